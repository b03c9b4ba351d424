"""pix2pix (Isola et al., CVPR 2017), as PrivacyReID uses it: a U-Net of strided convolutions, and a discriminator."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal, cast

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from veilkit.configs import check_ranges
from veilkit.errors import ConfigError, DataError

_STD = 0.02  # of all first weights, in pix2pix and in PrivacyReID's released code
_SLOPE = 0.2  # of the leaky rectifiers


@dataclass(frozen=True, slots=True)
class Pix2PixConfig:
    """width: channels after the first layer (ngf); they double from layer to layer, up to `widest` times width.

    depth: how many times the picture is halved. The paper's 7 take 256 x 128 down to 2 x 1.
    start: first weights, pix2pix's ("normal": N(0, 0.02)) or those that keep the signal's size from layer to layer
    ("he"), from which a short training gets further.
    """

    width: int = 64
    depth: int = 7
    widest: int = 8
    start: Literal["normal", "he"] = "normal"

    def __post_init__(self) -> None:
        if self.start not in ("normal", "he"):
            raise ConfigError(f"start must be normal or he, but got {self.start!r}")
        check_ranges(self, {"width": (1, 1024), "widest": (1, 64), "depth": (2, 10)})

    def channels(self, level: int) -> int:
        """Channels after `level` + 1 halvings."""
        return self.width * min(1 << level, self.widest)


class Pix2PixUNet(nn.Module):
    """(N, 3, H, W) in [0, 1] to the same; H and W are multiples of 2 ** depth. Inside it works on [-1, 1].

    4 x 4 convolutions of stride 2 with batch norm and a leaky rectifier on the way down, transposed ones on the way
    up, the maps of the way down beside those of the way up, tanh at the end; no dropout.
    """

    def __init__(self, config: Pix2PixConfig) -> None:
        super().__init__()
        self.config = config
        widths = [config.channels(level) for level in range(config.depth)]
        last = config.depth - 1
        self.down = nn.ModuleList(
            _down(into, out, active=level > 0, normed=0 < level < last)
            for level, (into, out) in enumerate(zip([3, *widths[:-1]], widths, strict=True))
        )
        self.up = nn.ModuleList(
            _up(widths[level] * (1 if level == last else 2), widths[level - 1]) for level in range(last, 0, -1)
        )
        self.answer = nn.Sequential(nn.ReLU(), nn.ConvTranspose2d(2 * widths[0], 3, 4, 2, 1), nn.Tanh())
        start_normal(self)
        if config.start == "he":
            _start_he(self)
        self.to(memory_format=torch.channels_last)  # type: ignore[call-overload]

    def forward(self, images: Tensor) -> Tensor:
        """The picture that the generator makes of each picture."""
        step = 2**self.config.depth
        if images.shape[2] % step or images.shape[3] % step:
            raise DataError(
                f"a generator of {self.config.depth} halvings takes sides that are multiples of {step}, "
                f"but got {images.shape[2]} x {images.shape[3]}"
            )
        maps = (2 * images - 1).contiguous(memory_format=torch.channels_last)
        kept = []
        for layer in self.down:
            maps = layer(maps)
            kept.append(maps)
        for layer, beside in zip(self.up, reversed(kept[:-1]), strict=True):
            maps = torch.cat([layer(maps), beside], 1)
        return (cast(Tensor, self.answer(maps)) + 1) / 2


def start_normal(network: nn.Module) -> None:
    """First weights as in pix2pix: N(0, 0.02), those of batch norm N(1, 0.02), biases 0."""
    for layer in network.modules():
        if isinstance(layer, (nn.Conv2d, nn.ConvTranspose2d)):
            nn.init.normal_(layer.weight, 0.0, _STD)
        elif isinstance(layer, nn.BatchNorm2d):
            nn.init.normal_(layer.weight, 1.0, _STD)
        else:
            continue
        if layer.bias is not None:
            nn.init.zeros_(layer.bias)


def _start_he(network: nn.Module) -> None:
    """First weights of all convolutions after He et al. (2015), N(0, 2 / values that an output is a sum of)."""
    for layer in network.modules():
        if isinstance(layer, nn.Conv2d):
            nn.init.kaiming_normal_(layer.weight, a=_SLOPE)
        elif isinstance(layer, nn.ConvTranspose2d):
            # At stride 2 a quarter of the 4 x 4 kernel meets each output pixel.
            summed = (
                layer.in_channels * layer.kernel_size[0] * layer.kernel_size[1] / (layer.stride[0] * layer.stride[1])
            )
            nn.init.normal_(layer.weight, 0.0, math.sqrt(2 / summed))


def _down(into: int, out: int, *, active: bool, normed: bool) -> nn.Sequential:
    """Halves the maps. The first one sees the picture itself; the last has too few pixels for a norm."""
    layers: list[nn.Module] = [nn.LeakyReLU(_SLOPE)] if active else []
    layers.append(nn.Conv2d(into, out, 4, 2, 1, bias=False))
    return nn.Sequential(*layers, nn.BatchNorm2d(out)) if normed else nn.Sequential(*layers)


def _up(into: int, out: int) -> nn.Sequential:
    return nn.Sequential(nn.ReLU(), nn.ConvTranspose2d(into, out, 4, 2, 1, bias=False), nn.BatchNorm2d(out))


@dataclass(frozen=True, slots=True)
class PatchGanConfig:
    """width: channels after the first layer; they double from layer to layer, up to 8 times.

    layers: halvings of the picture. 3 judge patches of 70 x 70 pixels, 2 of 34 x 34, 1 of 16 x 16.
    """

    width: int = 64
    layers: int = 3

    def __post_init__(self) -> None:
        check_ranges(self, {"width": (1, 1024), "layers": (1, 8)})


class PatchGan(nn.Module):
    """A picture and one made of it, each (N, 3, H, W) in [0, 1], to logits (N, 1, h, w): is the second real?"""

    def __init__(self, config: PatchGanConfig) -> None:
        super().__init__()
        self.config = config
        widths = [config.width * min(1 << level, 8) for level in range(config.layers + 1)]
        layers: list[nn.Module] = [nn.Conv2d(6, widths[0], 4, 2, 1), nn.LeakyReLU(0.2)]
        for level in range(1, config.layers + 1):
            stride = 2 if level < config.layers else 1
            layers += [
                nn.Conv2d(widths[level - 1], widths[level], 4, stride, 1, bias=False),
                nn.BatchNorm2d(widths[level]), nn.LeakyReLU(0.2),
            ]  # fmt: skip
        self.layers = nn.Sequential(*layers, nn.Conv2d(widths[-1], 1, 4, 1, 1))
        start_normal(self)
        self.to(memory_format=torch.channels_last)  # type: ignore[call-overload]

    def forward(self, given: Tensor, answer: Tensor) -> Tensor:
        """Logits, positive where a patch looks real."""
        pair = 2 * torch.cat([given, answer], 1) - 1
        return cast(Tensor, self.layers(pair.contiguous(memory_format=torch.channels_last)))


def discriminator_loss(real: Tensor, made: Tensor) -> Tensor:
    """What the discriminator minimises, from its logits on real and on made pairs: Eq. 1 and 4, negated and halved.

    Half of -mean log D(real) - mean log(1 - D(made)), as in pix2pix, so that it learns slower than the generator.
    """
    return (F.softplus(-real).mean() + F.softplus(made).mean()) / 2


def generator_loss(made: Tensor) -> Tensor:
    """What the generator minimises: -mean log D(made), pix2pix's form of Eq. 1 and 4 that does not saturate."""
    return F.softplus(-made).mean()
