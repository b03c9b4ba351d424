"""AVIH's key model: a small network with secret random weights that maps a protected picture to its original."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor

from veilkit.rng import Randomness

_SHAPES = ((16, 3), (16, 16), (3, 16))  # output and input channels of its 3x3 convolutions


class KeyModel:
    """Three convolutions, leaky between them and a sigmoid at the end; every weight comes from the key."""

    def __init__(self, rng: Randomness) -> None:
        self._weights = [
            rng.child("weights", layer).normal(out, into, 3, 3) * (2 / (9 * into)) ** 0.5
            for layer, (out, into) in enumerate(_SHAPES)
        ]

    def __call__(self, pictures: Tensor) -> Tensor:
        """(N, 3, H, W) in [0, 1] -> (N, 3, H, W) in (0, 1); differentiable."""
        maps = pictures * 2 - 1
        for weight in self._weights[:-1]:
            maps = F.leaky_relu(F.conv2d(maps, weight, padding=1), 0.2)
        return torch.sigmoid(F.conv2d(maps, self._weights[-1], padding=1))
