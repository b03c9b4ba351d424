"""Small methods for tests: not trained, since what is tested does not depend on how much they know."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from pathlib import Path

import torch

from veilkit.methods.fro.assembly import AssemblyConfig
from veilkit.methods.fro.method import Fro, FroConfig
from veilkit.methods.fro.pool import Pool
from veilkit.methods.learned import Decoder, decoder_beside
from veilkit.methods.peprnet.config import PeprNetConfig, decoder_config, encoder_config
from veilkit.methods.peprnet.deid_decoder import DeidDecoder
from veilkit.methods.peprnet.method import PeprNet
from veilkit.methods.privacyreid.config import PrivacyReidConfig
from veilkit.methods.privacyreid.method import PrivacyReid
from veilkit.networks.pix2pix import PatchGanConfig, Pix2PixConfig, Pix2PixUNet
from veilkit.networks.reid import ReidNetwork, ReidNetworkConfig
from veilkit.training.reid_config import AGW, PLAIN

_FOLDER = tempfile.TemporaryDirectory(prefix="veilkit-tests-")
TINY_PRIVACYREID = PrivacyReidConfig(
    reid=replace(AGW, backbone="osnet-x0.25", size=(32, 16), epochs=2, identities=3, images=2, warmup=0),
    generator=Pix2PixConfig(width=4, depth=3),
    discriminator=PatchGanConfig(width=4, layers=1),
    baseline_epochs=1,
    check_every=1,
)


def tiny_generator(seed: int) -> Pix2PixUNet:
    """Weights large enough that pictures differ in what it makes of them; statistics of some noise."""
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        generator = Pix2PixUNet(TINY_PRIVACYREID.generator)
        with torch.no_grad():
            for parameter in generator.parameters():
                parameter.mul_(8)
            generator.train()(torch.rand(8, 3, 32, 16))
    return generator.eval()


@cache
def tiny_model_file(seed: int = 0) -> str:
    """A model file with its decoder beside it."""
    file = Path(_FOLDER.name) / f"tiny-{seed}.safetensors"
    method = PrivacyReid(TINY_PRIVACYREID, tiny_generator(seed))
    method.save(file)
    Decoder(tiny_generator(seed + 100), TINY_PRIVACYREID.size, method.name, method.model_sha256).save(
        decoder_beside(file)
    )
    return str(file)


TINY_PEPRNET = PeprNetConfig(
    backbone="osnet-x0.25", size=(32, 16), last_stride=1, features=16, unit=True, mining="hard", decoder_width=4,
    epochs=2, identities=3, images=2, rate=1e-3,
)  # fmt: skip


@cache
def tiny_peprnet(seed: int = 0) -> PeprNet:
    """Weights large enough that pictures differ in what is drawn of them; statistics of some noise."""
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        encoder, decoder = ReidNetwork(encoder_config(TINY_PEPRNET)), DeidDecoder(decoder_config(TINY_PEPRNET))
        with torch.no_grad():
            for parameter in decoder.parameters():
                parameter.mul_(4)
            encoder.train()(torch.rand(8, 3, 32, 16))
    return PeprNet(TINY_PEPRNET, encoder, decoder)


@cache
def tiny_peprnet_file(seed: int = 0) -> str:
    """A model file with its expert beside it."""
    file = Path(_FOLDER.name) / f"peprnet-{seed}.safetensors"
    tiny_peprnet(seed).save(file)
    return str(file)


TINY_FRO = FroConfig(
    group=4,
    assembly=AssemblyConfig(steps=3),
    pool=replace(PLAIN, backbone="osnet-x0.25", size=(32, 16), epochs=2, identities=3, images=2),
)


def tiny_pool(people: Sequence[str], backbone: str = "osnet-x0.25") -> Pool:
    """A network of random weights whose running statistics are those of some noise."""
    with torch.random.fork_rng():
        torch.manual_seed(0)
        network = ReidNetwork(ReidNetworkConfig(backbone=backbone, size=(32, 16), identities=len(people)))
        network.train()
        with torch.no_grad():
            for head in network.heads:
                head.classifier.weight.normal_(std=0.1)
            network(torch.rand(16, 3, 32, 16))
    return Pool.of(network.eval(), people, [2] * len(people))


def tiny_fro(people: Sequence[str]) -> Fro:
    """FRO with such a pool, in three steps at 32 x 16."""
    return Fro(TINY_FRO, tiny_pool(people))
