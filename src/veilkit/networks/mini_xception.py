"""mini-XCEPTION (Arriaga et al. 2017): 64x64 grey pictures to seven expressions, in 56,000 numbers.

Borders are those of TensorFlow's "same": where an odd number of cells is missing, the far side gets one more.
"""

from __future__ import annotations

from typing import cast

import torch.nn.functional as F
from torch import Tensor, nn

SIDE = 64
CLASSES = 7
_STEM, _WIDTHS = 8, (16, 32, 64, 128)
_EPSILON = 1e-3


def _norm(channels: int) -> nn.BatchNorm2d:
    return nn.BatchNorm2d(channels, eps=_EPSILON)


class Separable(nn.Module):
    """A 3x3 filter of each channel, then a mix of all."""

    def __init__(self, inputs: int, outputs: int) -> None:
        super().__init__()
        self.depthwise = nn.Conv2d(inputs, inputs, 3, 1, 1, groups=inputs, bias=False)
        self.pointwise = nn.Conv2d(inputs, outputs, 1, bias=False)
        self.norm = _norm(outputs)

    def forward(self, maps: Tensor) -> Tensor:
        """(N, inputs, H, W) -> (N, outputs, H, W)."""
        return cast(Tensor, self.norm(self.pointwise(self.depthwise(maps))))


class XceptionBlock(nn.Module):
    """Two separable convolutions and a pool, beside a strided shortcut."""

    def __init__(self, inputs: int, outputs: int) -> None:
        super().__init__()
        self.shortcut = nn.Conv2d(inputs, outputs, 1, 2, bias=False)
        self.norm = _norm(outputs)
        self.first, self.second = Separable(inputs, outputs), Separable(outputs, outputs)

    def forward(self, maps: Tensor) -> Tensor:
        """(N, inputs, H, W) -> (N, outputs, H / 2, W / 2), rounded up."""
        found = self.second(F.relu(self.first(maps)))
        return _pooled(found) + cast(Tensor, self.norm(self.shortcut(maps)))


class MiniXception(nn.Module):
    """(N, 1, 64, 64) in [-1, 1] -> logits (N, 7)."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.first_norm = nn.Conv2d(1, _STEM, 3, bias=False), _norm(_STEM)
        self.second, self.second_norm = nn.Conv2d(_STEM, _STEM, 3, bias=False), _norm(_STEM)
        inputs = (_STEM, *_WIDTHS[:-1])
        self.blocks = nn.Sequential(*(XceptionBlock(*pair) for pair in zip(inputs, _WIDTHS, strict=True)))
        self.last = nn.Conv2d(_WIDTHS[-1], CLASSES, 3, 1, 1)

    def forward(self, images: Tensor) -> Tensor:
        """Logits; their softmax is the network's answer."""
        maps = F.relu(self.second_norm(self.second(F.relu(self.first_norm(self.first(images))))))
        return cast(Tensor, self.last(self.blocks(maps))).mean((2, 3))


def _pooled(maps: Tensor) -> Tensor:
    """The largest of 3x3 at every second place."""
    height, width = maps.shape[2:]
    down, across = (max(((side + 1) // 2 - 1) * 2 + 3 - side, 0) for side in (height, width))
    around = (across // 2, across - across // 2, down // 2, down - down // 2)
    return F.max_pool2d(F.pad(maps, around, value=float("-inf")), 3, 2)
