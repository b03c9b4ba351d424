"""A U-Net (Ronneberger et al., MICCAI 2015): image to image, at any size."""

from __future__ import annotations

from dataclasses import dataclass
from typing import cast

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from veilkit.errors import ConfigError, DataError


@dataclass(frozen=True, slots=True)
class UNetConfig:
    """What a U-Net is built from.

    width: channels of the first level; each of `depth` levels below has half the size and twice the channels, up to
    `widest` times `width`. inputs, outputs: channels. places: two more input channels tell each pixel its row and
    column in [-1, 1], so that what does not depend on the image, such as a mean image, is quickly learned.
    features: length of a vector that conditions the lowest level; 0 for none.
    """

    width: int = 32
    depth: int = 4
    widest: int = 8
    inputs: int = 3
    outputs: int = 3
    places: bool = True
    features: int = 0

    def __post_init__(self) -> None:
        if min(self.width, self.depth, self.widest, self.inputs, self.outputs) < 1 or self.features < 0:
            raise ConfigError(f"a U-Net's sizes must be positive, but got {self}")

    def channels(self, level: int) -> int:
        """Channels of a level, from 0 (full size) to `depth`."""
        return self.width * min(1 << level, self.widest)


class UNet(nn.Module):
    """(N, inputs, H, W), and features (N, D) where it is conditioned, to (N, outputs, H, W) in (0, 1).

    The last layer also sees the image itself, so that what was never changed is quickly learned.
    Images are padded at their right and lower edge to a multiple of 2 ** depth, by repeating the edge; the answer is
    cut back. Training needs at least two images in a batch where the lowest level has one pixel (batch norm).
    """

    def __init__(self, config: UNetConfig) -> None:
        super().__init__()
        self.config = config
        widths = [config.channels(level) for level in range(config.depth + 1)]
        first = config.inputs + 2 * config.places
        self.down = nn.ModuleList(_Block(into, out) for into, out in zip([first, *widths], widths, strict=False))
        self.up = nn.ModuleList(
            _Block(widths[level + 1] + widths[level], widths[level]) for level in reversed(range(config.depth))
        )
        self.condition = nn.Linear(config.features, widths[-1]) if config.features else None
        self.answer = nn.Conv2d(widths[0] + first, config.outputs, 1)
        self.to(memory_format=torch.channels_last)  # type: ignore[call-overload]  # half as fast again on a CPU

    def forward(self, images: Tensor, features: Tensor | None = None) -> Tensor:
        """The sigmoid of `logits`."""
        return self.logits(images, features).sigmoid()

    def logits(self, images: Tensor, features: Tensor | None = None) -> Tensor:
        """(N, outputs, H, W) before the sigmoid."""
        if (features is None) != (self.condition is None):
            raise DataError(
                f"a U-Net conditioned on {self.config.features} features got "
                f"{'none' if features is None else tuple(features.shape)}"
            )
        height, width = images.shape[2:]
        step = 2**self.config.depth
        maps = F.pad(images, (0, -width % step, 0, -height % step), mode="replicate")
        if self.config.places:
            maps = torch.cat([maps, _places(maps)], 1)
        maps = maps.contiguous(memory_format=torch.channels_last)
        given, kept = maps, []
        for level, block in enumerate(self.down):
            maps = block(F.avg_pool2d(maps, 2) if level else maps)
            kept.append(maps)
        if self.condition is not None:
            maps = maps + self.condition(features)[:, :, None, None]
        for block, beside in zip(self.up, reversed(kept[:-1]), strict=True):
            maps = block(torch.cat([F.interpolate(maps, scale_factor=2.0, mode="nearest"), beside], 1))
        return cast(Tensor, self.answer(torch.cat([maps, given], 1)))[:, :, :height, :width]


class _Block(nn.Sequential):
    """Two 3 x 3 convolutions, each with batch norm and a leaky rectifier.

    Norms of each image alone would forget its brightness, which a recovery must keep.
    """

    def __init__(self, into: int, out: int) -> None:
        super().__init__(
            nn.Conv2d(into, out, 3, padding=1, bias=False), nn.BatchNorm2d(out), nn.LeakyReLU(0.1),
            nn.Conv2d(out, out, 3, padding=1, bias=False), nn.BatchNorm2d(out), nn.LeakyReLU(0.1),
        )  # fmt: skip


def _places(maps: Tensor) -> Tensor:
    """(N, 2, H, W): row and column of each pixel, in [-1, 1]."""
    rows, columns = (torch.linspace(-1, 1, side, dtype=maps.dtype, device=maps.device) for side in maps.shape[2:])
    grid = torch.stack(torch.meshgrid(rows, columns, indexing="ij"))
    return grid.expand(len(maps), -1, -1, -1)
