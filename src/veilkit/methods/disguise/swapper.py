"""A face swapper after SimSwap (Chen et al., ACM Multimedia 2020): encoder, identity injection by AdaIN, decoder."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import cast

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from veilkit.configs import check_range
from veilkit.errors import ConfigError, DataError
from veilkit.methods.faces.pasting import feather

_EPSILON = 1e-5  # added to a channel's variance


@dataclass(frozen=True, slots=True)
class SwapperConfig:
    """size: side of the square crops in pixels. width: channels after the first layer; they double at each halving.

    halvings: of the crop before the identity is injected. blocks: AdaIN residual blocks. dim: length of an identity.
    masked: the crop itself outside of the feathered ellipse that is pasted back, so that losses see what is released
    and nothing is spent on drawing hair and background. The defaults are SimSwap's for 224 pixels.
    """

    size: int = 224
    width: int = 64
    halvings: int = 3
    blocks: int = 9
    dim: int = 512
    masked: bool = False

    def __post_init__(self) -> None:
        for name, most in (("width", 1024), ("halvings", 6), ("blocks", 64)):
            check_range(name, getattr(self, name), 1, most)
        check_range("dim", self.dim, 2, 65536)
        check_range("size", self.size, 16, 1024)
        if self.size % 2**self.halvings:
            raise ConfigError(
                f"a swapper of {self.halvings} halvings takes a size that is a multiple of "
                f"{2**self.halvings}, but got {self.size}"
            )


def adain(maps: Tensor, scale: Tensor, shift: Tensor) -> Tensor:
    """Adaptive instance norm: each channel at mean 0 and variance 1, times (1 + scale), plus shift.

    maps: (N, C, H, W). scale, shift: (N, C).
    """
    return F.instance_norm(maps, eps=_EPSILON) * (1 + scale)[:, :, None, None] + shift[:, :, None, None]


class InjectionBlock(nn.Module):
    """A residual block of two convolutions, each followed by an AdaIN whose style is read off the identity."""

    def __init__(self, channels: int, dim: int) -> None:
        super().__init__()
        self.first = nn.Conv2d(channels, channels, 3, padding=1, padding_mode="reflect")
        self.second = nn.Conv2d(channels, channels, 3, padding=1, padding_mode="reflect")
        self.first_style = nn.Linear(dim, 2 * channels)
        self.second_style = nn.Linear(dim, 2 * channels)

    def forward(self, maps: Tensor, identity: Tensor) -> Tensor:
        """Maps (N, C, H, W) and identities (N, D) -> maps of the same shape."""
        inner = F.relu(adain(self.first(maps), *self.first_style(identity).chunk(2, 1)))
        return maps + adain(self.second(inner), *self.second_style(identity).chunk(2, 1))


class Swapper(nn.Module):
    """g(x, z): crops (N, 3, S, S) in [0, 1] and identities (N, D) of length 1 to crops in [0, 1].

    The crop's own attributes (pose, expression, light, background) must pass through the encoder; the identity comes
    in through the blocks alone.
    """

    def __init__(self, config: SwapperConfig) -> None:
        super().__init__()
        self.config = config
        widths = [config.width << level for level in range(config.halvings + 1)]
        encoder: list[nn.Module] = [*_wide(3, widths[0]), nn.BatchNorm2d(widths[0]), nn.ReLU()]
        for into, out in pairwise(widths):
            encoder += [nn.Conv2d(into, out, 3, 2, 1), nn.BatchNorm2d(out), nn.ReLU()]
        self.encoder = nn.Sequential(*encoder)
        self.blocks = nn.ModuleList(InjectionBlock(widths[-1], config.dim) for _ in range(config.blocks))
        decoder: list[nn.Module] = []
        for into, out in zip(widths[:0:-1], widths[-2::-1], strict=True):
            decoder += [
                nn.Upsample(scale_factor=2, mode="bilinear", align_corners=False),
                nn.Conv2d(into, out, 3, 1, 1), nn.BatchNorm2d(out), nn.ReLU(),
            ]  # fmt: skip
        self.decoder = nn.Sequential(*decoder, *_wide(widths[0], 3), nn.Tanh())
        self.register_buffer("mask", feather(config.size) if config.masked else None, persistent=False)
        self.to(memory_format=torch.channels_last)  # type: ignore[call-overload]  # missing from torch's stubs

    def forward(self, crops: Tensor, identity: Tensor) -> Tensor:
        """The crops with the faces of these identities."""
        if crops.shape[2:] != (self.config.size, self.config.size) or identity.shape != (len(crops), self.config.dim):
            raise DataError(
                f"this swapper takes crops of {self.config.size} x {self.config.size} pixels and as many identities "
                f"of {self.config.dim}, but got {tuple(crops.shape)} and {tuple(identity.shape)}"
            )
        maps = self.encoder((2 * crops - 1).contiguous(memory_format=torch.channels_last))
        for block in self.blocks:
            maps = block(maps, identity)
        drawn = (cast(Tensor, self.decoder(maps)) + 1) / 2
        mask = cast(Tensor | None, self.mask)
        return drawn if mask is None else crops + mask * (drawn - crops)


def _wide(into: int, out: int) -> tuple[nn.Module, nn.Module]:
    return nn.ReflectionPad2d(3), nn.Conv2d(into, out, 7)
