"""Small PEPR-Nets for tests: not trained, since what is tested does not depend on how much they know."""

from __future__ import annotations

import tempfile
from functools import cache
from pathlib import Path

import torch

from veilkit.methods.peprnet.config import PeprNetConfig, decoder_config, encoder_config
from veilkit.methods.peprnet.deid_decoder import DeidDecoder
from veilkit.methods.peprnet.method import PeprNet
from veilkit.networks.reid import ReidNetwork

_FOLDER = tempfile.TemporaryDirectory(prefix="veilkit-tests-")
TINY = PeprNetConfig(
    backbone="osnet-x0.25", size=(32, 16), last_stride=1, features=16, unit=True, mining="hard", decoder_width=4,
    epochs=2, identities=3, images=2, rate=1e-3,
)  # fmt: skip


@cache
def tiny_peprnet(seed: int = 0) -> PeprNet:
    """Weights large enough that pictures differ in what is drawn of them; statistics of some noise."""
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        encoder, decoder = ReidNetwork(encoder_config(TINY)), DeidDecoder(decoder_config(TINY))
        with torch.no_grad():
            for parameter in decoder.parameters():
                parameter.mul_(4)
            encoder.train()(torch.rand(8, 3, 32, 16))
    return PeprNet(TINY, encoder, decoder)


@cache
def tiny_peprnet_file(seed: int = 0) -> str:
    """A model file with its expert beside it."""
    file = Path(_FOLDER.name) / f"peprnet-{seed}.safetensors"
    tiny_peprnet(seed).save(file)
    return str(file)
