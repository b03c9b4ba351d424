"""ResNet-18 and ResNet-50 (He et al., CVPR 2016), with IBN-a norms and AGW's non-local blocks as options."""

from __future__ import annotations

from dataclasses import dataclass
from typing import cast

import torch
from torch import Tensor, nn

from veilkit.errors import ConfigError


class NonLocalBlock(nn.Module):
    """x + norm(W (theta(x) phi(x)^T / P) g(x)) over the P places of the map.

    The last norm starts at zero, so that a new block leaves a pretrained network as it was.
    """

    def __init__(self, channels: int, reduction: int = 2) -> None:
        super().__init__()
        hidden = channels // reduction
        self.theta = nn.Conv2d(channels, hidden, 1)
        self.phi = nn.Conv2d(channels, hidden, 1)
        self.value = nn.Conv2d(channels, hidden, 1)
        self.expand = nn.Conv2d(hidden, channels, 1)
        self.norm = nn.BatchNorm2d(channels)
        nn.init.zeros_(self.norm.weight)
        nn.init.zeros_(self.norm.bias)

    def forward(self, maps: Tensor) -> Tensor:
        """(N, C, H, W) -> (N, C, H, W)."""
        theta, phi, value = (part(maps).flatten(2) for part in (self.theta, self.phi, self.value))
        attention = torch.einsum("ncp,ncq->npq", theta, phi) / theta.shape[2]
        mixed = torch.einsum("npq,ncq->ncp", attention, value).reshape(len(maps), -1, *maps.shape[2:])
        out: Tensor = maps + self.norm(self.expand(mixed))
        return out


@dataclass(frozen=True, slots=True)
class ResNetConfig:
    """depth: 18 or 50. ibn: IBN-a in the first three stages (Pan et al., ECCV 2018).

    non_local: how many of each stage's last blocks are followed by a non-local block; AGW's is (0, 2, 3, 0).
    last_stride: 1 keeps the last map at 1/16 of the image.
    """

    depth: int = 50
    last_stride: int = 1
    ibn: bool = False
    non_local: tuple[int, int, int, int] = (0, 0, 0, 0)

    def __post_init__(self) -> None:
        if self.depth not in _REPEATS:
            raise ConfigError(f"depth must be 18 or 50, but got {self.depth}")
        if any(not 0 <= n <= blocks for n, blocks in zip(self.non_local, _REPEATS[self.depth], strict=True)):
            raise ConfigError(f"non_local must be at most {_REPEATS[self.depth]}, but got {self.non_local}")


_REPEATS = {18: (2, 2, 2, 2), 50: (3, 4, 6, 3)}
_WIDTHS = (64, 128, 256, 512)


class InstanceBatchNorm(nn.Module):
    """IBN-a: the first half of the channels by instance norm, which drops style, the rest by batch norm."""

    def __init__(self, channels: int) -> None:
        super().__init__()
        self.styled = channels // 2
        self.instance = nn.InstanceNorm2d(self.styled, affine=True)
        self.batch = nn.BatchNorm2d(channels - self.styled)

    def forward(self, maps: Tensor) -> Tensor:
        """(N, C, H, W) -> the same shape."""
        return torch.cat([self.instance(maps[:, : self.styled]), self.batch(maps[:, self.styled :])], 1)


def _norm(channels: int, ibn: bool) -> nn.Module:
    return InstanceBatchNorm(channels) if ibn else nn.BatchNorm2d(channels)


class ResidualBlock(nn.Module):
    """Two 3x3 convolutions, or with `bottleneck` 1x1, 3x3, 1x1 with four times the width at the end."""

    def __init__(self, inputs: int, width: int, *, stride: int, bottleneck: bool, ibn: bool) -> None:
        super().__init__()
        outputs = 4 * width if bottleneck else width
        shapes = (
            ((inputs, width, 1, 1), (width, width, 3, stride), (width, outputs, 1, 1))
            if bottleneck
            else ((inputs, width, 3, stride), (width, outputs, 3, 1))
        )
        layers: list[nn.Module] = []
        for i, (before, after, kernel, step) in enumerate(shapes):
            layers += [
                nn.Conv2d(before, after, kernel, step, kernel // 2, bias=False),
                _norm(after, ibn and i == 0),
                nn.ReLU(inplace=True),
            ]
        self.residual = nn.Sequential(*layers[:-1])
        self.shortcut = (
            nn.Sequential(nn.Conv2d(inputs, outputs, 1, stride, bias=False), nn.BatchNorm2d(outputs))
            if stride != 1 or inputs != outputs
            else nn.Identity()
        )
        self.activation = nn.ReLU(inplace=True)

    def forward(self, maps: Tensor) -> Tensor:
        """(N, inputs, H, W) -> (N, outputs, H / stride, W / stride)."""
        return cast(Tensor, self.activation(self.residual(maps) + self.shortcut(maps)))


class ResNet(nn.Module):
    """(N, 3, H, W) -> (N, 512 or 2048, H / s, W / s), s being 32, or 16 with last_stride 1."""

    def __init__(self, config: ResNetConfig) -> None:
        super().__init__()
        bottleneck = config.depth >= 50
        self.channels = _WIDTHS[-1] * (4 if bottleneck else 1)
        self.stem = nn.Sequential(
            nn.Conv2d(3, 64, 7, 2, 3, bias=False), nn.BatchNorm2d(64), nn.ReLU(inplace=True), nn.MaxPool2d(3, 2, 1)
        )
        blocks: list[nn.Module] = []
        inputs = 64
        for stage, (width, repeats) in enumerate(zip(_WIDTHS, _REPEATS[config.depth], strict=True)):
            first = (1, 2, 2, config.last_stride)[stage]
            for i in range(repeats):
                stride = first if i == 0 else 1
                ibn = config.ibn and stage < 3
                blocks.append(ResidualBlock(inputs, width, stride=stride, bottleneck=bottleneck, ibn=ibn))
                inputs = width * (4 if bottleneck else 1)
                if i >= repeats - config.non_local[stage]:
                    blocks.append(NonLocalBlock(inputs))
        self.blocks = nn.Sequential(*blocks)

    def parts(self) -> list[nn.Module]:
        """The stem and each block, in the order the image meets them."""
        return [self.stem, *self.blocks]

    def forward(self, images: Tensor) -> Tensor:
        """Normalised images to the last feature map."""
        return cast(Tensor, self.blocks(self.stem(images)))
