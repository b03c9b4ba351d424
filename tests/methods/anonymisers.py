"""Small anonymisers for tests: not trained, since what is tested does not depend on how much they know."""

from __future__ import annotations

import tempfile
from dataclasses import replace
from functools import cache
from pathlib import Path

import torch

from veilkit.methods.learned import Decoder, decoder_beside
from veilkit.methods.privacyreid.config import PrivacyReidConfig
from veilkit.methods.privacyreid.method import PrivacyReid
from veilkit.networks.pix2pix import PatchGanConfig, Pix2PixConfig, Pix2PixUNet
from veilkit.training.reid_config import AGW

_FOLDER = tempfile.TemporaryDirectory(prefix="veilkit-tests-")
TINY = PrivacyReidConfig(
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
        generator = Pix2PixUNet(TINY.generator)
        with torch.no_grad():
            for parameter in generator.parameters():
                parameter.mul_(8)
            generator.train()(torch.rand(8, 3, 32, 16))
    return generator.eval()


@cache
def tiny_model_file(seed: int = 0) -> str:
    """A model file with its decoder beside it."""
    file = Path(_FOLDER.name) / f"tiny-{seed}.safetensors"
    method = PrivacyReid(TINY, tiny_generator(seed))
    method.save(file)
    Decoder(tiny_generator(seed + 100), TINY.size, method.name, method.model_sha256).save(decoder_beside(file))
    return str(file)
