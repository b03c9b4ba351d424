"""The discriminator of pix2pix (Isola et al., CVPR 2017): tells real pairs of pictures from made ones."""

from __future__ import annotations

from dataclasses import dataclass
from typing import cast

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from veilkit.configs import check_range
from veilkit.networks.pix2pix_unet import start_normal


@dataclass(frozen=True, slots=True)
class PatchGanConfig:
    """width: channels after the first layer; they double from layer to layer, up to 8 times.

    layers: halvings of the picture. 3 judge patches of 70 x 70 pixels, 2 of 34 x 34, 1 of 16 x 16.
    """

    width: int = 64
    layers: int = 3

    def __post_init__(self) -> None:
        check_range("width", self.width, 1, 1024)
        check_range("layers", self.layers, 1, 8)


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
