"""A method run again under fresh keys, for attackers who average several protections of one picture."""

from __future__ import annotations

import hashlib
from typing import Any

import torch
from torch import Tensor

from veilkit.errors import ConfigError
from veilkit.methods import METHODS, Method, bind
from veilkit.pipeline.manifest import Manifest
from veilkit.rng import Randomness
from veilkit.types import ImageBatch

_AHEAD = 4  # draws made together, so that quick pictures do not leave the expert's slots empty


def method_of(manifest: Manifest | None) -> Method[Any] | None:
    """The method that a manifest names, to be run again; None where that cannot be done from a manifest alone.

    It can where each picture is protected by itself, another key gives another result, and nothing was learned.
    """
    if manifest is None or manifest.method not in METHODS:
        return None
    kind = METHODS[manifest.method]
    if kind.mixes or kind.learns or kind.calibrates or kind.unpaired or not kind.random:
        return None
    if manifest.expert_sha256 is not None:
        return None
    try:
        return kind.configured(settings=manifest.config)
    except ConfigError:  # written by another version, or by hand
        return None


class Again:
    """Protects pictures again, as `attacks.means.Protector`: the draw's number takes the place of a fresh key.

    A picture's randomness derives from its own values and the draw, so that it does not matter who shares a call.
    """

    def __init__(self, method: Method[Any], seed: int) -> None:
        self._method = method
        self._rng = bind(Randomness.from_seed(seed).child("again"), method)
        self._made: dict[tuple[str, int], Tensor] = {}

    def __call__(self, images: Tensor, draw: int) -> Tensor:
        """Images (N, 3, H, W) in [0, 1] to protected ones, under the key of this draw."""
        names = [hashlib.sha256(image.contiguous().numpy().tobytes()).hexdigest() for image in images]
        if any((name, draw) not in self._made for name in names):
            self._make(images, names, range(draw, draw + _AHEAD))
        return torch.stack([self._made[name, draw] for name in names])

    def _make(self, images: Tensor, names: list[str], draws: range) -> None:
        batch = ImageBatch(
            images.repeat(len(draws), 1, 1, 1), tuple(f"{name} {draw}" for draw in draws for name in names)
        )
        protected = self._method.protect(batch, rng=self._rng).images
        assert protected is not None
        keys = [(name, draw) for draw in draws for name in names]
        self._made = dict(zip(keys, protected, strict=True))  # earlier draws are not asked for again
