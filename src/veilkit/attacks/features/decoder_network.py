"""A decoder from feature vectors to images."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import cast

import torch.nn.functional as F
from torch import Tensor, nn

from veilkit.errors import ConfigError


@dataclass(frozen=True, slots=True)
class DecoderConfig:
    """features: length of a vector. size: (height, width) of the images. width: channels at full size.

    levels: how often the size doubles; `widest` times `width` channels at most.
    """

    features: int
    size: tuple[int, int]
    width: int = 32
    levels: int = 4
    widest: int = 8

    def __post_init__(self) -> None:
        if min(self.features, *self.size, self.width, self.levels, self.widest) < 1:
            raise ConfigError(f"a decoder's sizes must be positive, but got {self}")


class FeatureDecoder(nn.Module):
    """(N, features) to (N, 3, H, W) in (0, 1): a linear layer to a small map, which convolutions enlarge."""

    def __init__(self, config: DecoderConfig) -> None:
        super().__init__()
        self.config = config
        step = 2**config.levels
        self._start = tuple(-(-side // step) for side in config.size)
        widths = [config.width * min(2**level, config.widest) for level in reversed(range(config.levels + 1))]
        self._first = widths[0]
        self.spread = nn.Linear(config.features, widths[0] * self._start[0] * self._start[1])
        self.blocks = nn.ModuleList(
            nn.Sequential(
                nn.Conv2d(into, out, 3, padding=1, bias=False), nn.BatchNorm2d(out), nn.LeakyReLU(0.1)
            )
            for into, out in pairwise(widths)
        )  # fmt: skip
        self.answer = nn.Conv2d(widths[-1], 3, 3, padding=1)

    def forward(self, features: Tensor) -> Tensor:
        """(N, features) -> (N, 3, H, W)."""
        maps = self.spread(features).view(len(features), self._first, *self._start)
        for block in self.blocks:
            maps = block(F.interpolate(maps, scale_factor=2.0, mode="nearest"))
        height, width = self.config.size
        return cast(Tensor, self.answer(maps))[:, :, :height, :width].sigmoid()
