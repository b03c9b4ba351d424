"""The usual controls, one image at a time: blur, pixelation, noise, solid mask.

Lengths in pixels are those of a picture 256 pixels high and scale with the picture (`at_height`; 0: never scale), so
that a control is as strong on a 128x64 crop as on a photograph.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import torch
import torch.nn.functional as F
from torch import Tensor

from veilkit.configs import check_range
from veilkit.errors import ConfigError
from veilkit.methods.base import Method
from veilkit.rng import Randomness
from veilkit.types import ImageBatch, Release


def _paired(images: Tensor) -> Release:
    return Release(images=images, source_index=tuple(range(len(images))))


def _scaled(length: float, at_height: int, height: int) -> float:
    return length * height / at_height if at_height else length


def _check_length(name: str, length: float, at_height: int) -> None:
    check_range(name, length, 0.1, 10_000)
    check_range("at_height", at_height, 0, 100_000)


@dataclass(frozen=True, slots=True)
class BlurConfig:
    """sigma: standard deviation in pixels of a picture `at_height` high (PrivacyReID's released code: 12 at 256)."""

    sigma: float = 12.0
    at_height: int = 256

    def __post_init__(self) -> None:
        _check_length("sigma", self.sigma, self.at_height)


class Blur(Method[BlurConfig]):
    """Gaussian blur."""

    name = "blur"
    summary = "Gaussian blur of the whole picture"
    default = BlurConfig()

    def protect(self, batch: ImageBatch, *, rng: Randomness) -> Release:
        """Convolve each image with a Gaussian cut at three standard deviations; borders repeat the edge."""
        images = batch.images
        sigma = _scaled(self.config.sigma, self.config.at_height, images.shape[-2])
        radius = max(1, round(3 * sigma))
        offsets = torch.arange(-radius, radius + 1, dtype=torch.float32)
        kernel = torch.exp(-0.5 * (offsets / sigma) ** 2)
        kernel = (kernel / kernel.sum()).expand(3, 1, 1, -1)
        images = F.conv2d(F.pad(images, (radius, radius, 0, 0), mode="replicate"), kernel, groups=3)
        images = F.conv2d(F.pad(images, (0, 0, radius, radius), mode="replicate"), kernel.mT, groups=3)
        return _paired(images.clamp(0, 1))


@dataclass(frozen=True, slots=True)
class PixelateConfig:
    """cell: side of a cell in pixels of a picture `at_height` high (PrivacyReID, Sec. 4.1: 24 at 256)."""

    cell: float = 24.0
    at_height: int = 256

    def __post_init__(self) -> None:
        _check_length("cell", self.cell, self.at_height)


class Pixelate(Method[PixelateConfig]):
    """Pixelation by the mean of each cell."""

    name = "pixelate"
    summary = "every cell of a grid becomes its mean colour"
    default = PixelateConfig()

    def protect(self, batch: ImageBatch, *, rng: Randomness) -> Release:
        """Replace each cell by its mean; cells at the right and lower border may be smaller."""
        images = batch.images
        height, width = images.shape[-2:]
        cell = max(1, round(_scaled(self.config.cell, self.config.at_height, height)))
        means = F.avg_pool2d(F.pad(images, (0, -width % cell, 0, -height % cell)), cell, divisor_override=1)
        rows = _cell_sizes(height, cell)
        columns = _cell_sizes(width, cell)
        means = means / (rows[:, None] * columns[None, :])
        spread = means.repeat_interleave(rows, dim=2).repeat_interleave(columns, dim=3)
        return _paired(spread.clamp(0, 1))


def _cell_sizes(length: int, cell: int) -> Tensor:
    """Sizes of the cells along one side, the last one cut off by the border."""
    sizes = torch.full((-(-length // cell),), cell)
    sizes[-1] = length - cell * (len(sizes) - 1)
    return sizes


@dataclass(frozen=True, slots=True)
class NoiseConfig:
    """sigma: standard deviation on the [0, 1] scale (PrivacyReID, Sec. 4.1: 0.5)."""

    sigma: float = 0.5

    def __post_init__(self) -> None:
        check_range("sigma", self.sigma, 0.0, 100.0)


class Noise(Method[NoiseConfig]):
    """Additive Gaussian noise, clipped."""

    name = "noise"
    summary = "Gaussian noise added to every value, clipped to [0, 1]"
    default = NoiseConfig()
    random = True

    def protect(self, batch: ImageBatch, *, rng: Randomness) -> Release:
        """Add each item's own noise."""
        shape = batch.images.shape[1:]
        noise = torch.stack([rng.child("noise", item).normal(*shape) for item in batch.items])
        return _paired((batch.images + self.config.sigma * noise).clamp(0, 1))


@dataclass(frozen=True, slots=True)
class MaskConfig:
    """The masked box as fractions of height and width, and its colour (mean: the box's own mean colour)."""

    top: float = 0.0
    bottom: float = 1.0
    left: float = 0.0
    right: float = 1.0
    colour: Literal["black", "grey", "white", "mean"] = "black"

    def __post_init__(self) -> None:
        for name in ("top", "bottom", "left", "right"):
            check_range(name, getattr(self, name), 0.0, 1.0)
        if self.top >= self.bottom or self.left >= self.right:
            raise ConfigError("the mask must have top < bottom and left < right, or it would hide nothing")


class Mask(Method[MaskConfig]):
    """A solid box: over everything, or over the head of a person crop (preset `head`)."""

    name = "mask"
    summary = "a solid box over the picture, or over the head of a person crop"
    default = MaskConfig()
    presets = {"head": MaskConfig(bottom=0.22)}  # noqa: RUF012 - Mapping in the base class

    def protect(self, batch: ImageBatch, *, rng: Randomness) -> Release:
        """Fill the box; it is rounded outwards so that it never covers less than asked for."""
        config, images = self.config, batch.images.clone()
        height, width = images.shape[-2:]
        rows = slice(int(config.top * height), -int(-config.bottom * height // 1))
        columns = slice(int(config.left * width), -int(-config.right * width // 1))
        box = images[:, :, rows, columns]
        if config.colour == "mean":
            box.copy_(box.mean(dim=(2, 3), keepdim=True).expand_as(box))
        else:
            box.fill_({"black": 0.0, "grey": 0.5, "white": 1.0}[config.colour])
        return _paired(images)
