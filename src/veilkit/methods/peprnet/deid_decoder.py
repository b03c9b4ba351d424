"""PEPR-Net's De-ID decoder: from a feature vector to a picture without who is in it (Kansal et al., Figure 3)."""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch.nn.functional as F
from torch import Tensor, nn

from veilkit.configs import check_range
from veilkit.errors import ConfigError

_START = (4, 2)  # rows and columns that a vector is reshaped to: the shape of a person, upright
_STEPS = 3


@dataclass(frozen=True, slots=True)
class DeidDecoderConfig:
    """features: length of a vector, a multiple of 8. size: (height, width) of the pictures.

    width: channels after the first convolution, half as many after the second; the paper does not tell them.
    """

    features: int
    size: tuple[int, int]
    width: int = 64

    def __post_init__(self) -> None:
        cells = math.prod(_START)
        check_range("features", self.features, cells, 65536)
        if self.features % cells:
            raise ConfigError(
                f"a feature is reshaped to {_START[0]} x {_START[1]} places, so its length must be a multiple of "
                f"{cells}, but got {self.features}"
            )
        for side in self.size:
            check_range("size", side, 4, 1024)
        check_range("width", self.width, 2, 4096)


class DeidDecoder(nn.Module):
    """(N, features) to (N, 3, H, W): reshape, then three times upsampling and convolution, ReLU in between.

    The last convolution is linear, as in the paper, so values may lie a little outside [0, 1].
    """

    def __init__(self, config: DeidDecoderConfig) -> None:
        super().__init__()
        self.config = config
        widths = (config.features // math.prod(_START), config.width, config.width // 2, 3)
        self.convolutions = nn.ModuleList(
            nn.Conv2d(widths[step], widths[step + 1], 3, padding=1) for step in range(_STEPS)
        )

    def forward(self, features: Tensor) -> Tensor:
        """(N, features) -> (N, 3, H, W); the size grows evenly, in logarithm, over the three steps."""
        maps = features.reshape(len(features), -1, *_START)
        for step, convolution in enumerate(self.convolutions, start=1):
            size = [
                round(start * (end / start) ** (step / _STEPS))
                for start, end in zip(_START, self.config.size, strict=True)
            ]
            maps = F.interpolate(maps, size=size, mode="bilinear", align_corners=False)
            maps = convolution(maps) if step == _STEPS else F.relu(convolution(maps))
        return maps


def levelled(features: Tensor) -> Tensor:
    """Features (N, D) at length sqrt(D): their direction alone, in coordinates of about 1."""
    return F.normalize(features) * math.sqrt(features.shape[1])
