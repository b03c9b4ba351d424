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
from veilkit.methods.gaussian import convolved
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
        sigma = _scaled(self.config.sigma, self.config.at_height, batch.images.shape[-2])
        radius = max(1, round(3 * sigma))
        blurred = torch.empty_like(batch.images)
        for image, result in zip(batch.images, blurred, strict=True):
            for channel, target in zip(image, result, strict=True):  # one at a time: large pictures need much memory
                target.copy_(convolved(convolved(channel, sigma, radius).mT, sigma, radius).mT)
        return _paired(blurred.clamp_(0, 1))


@dataclass(frozen=True, slots=True)
class PixelateConfig:
    """cell: side of a cell in pixels of a picture `at_height` high (PrivacyReID, Sec. 4.1: 24 at 256)."""

    cell: float = 24.0
    at_height: int = 256

    def __post_init__(self) -> None:
        _check_length("cell", self.cell, self.at_height)
        check_range("cell", self.cell, 2, 10_000)


class Pixelate(Method[PixelateConfig]):
    """Pixelation by the mean of each cell."""

    name = "pixelate"
    summary = "every cell of a grid becomes its mean colour"
    default = PixelateConfig()

    def protect(self, batch: ImageBatch, *, rng: Randomness) -> Release:
        """Replace each cell by its mean; cells at the right and lower border may be smaller."""
        height, width = batch.images.shape[-2:]
        cell = max(2, round(_scaled(self.config.cell, self.config.at_height, height)))  # of 1 it would hide nothing
        means = F.avg_pool2d(batch.images, cell, ceil_mode=True)  # a cell cut off by the border: the mean of its rest
        rows, columns = torch.arange(height) // cell, torch.arange(width) // cell
        return _paired(means[:, :, rows[:, None], columns[None, :]].clamp_(0, 1))


@dataclass(frozen=True, slots=True)
class NoiseConfig:
    """sigma: standard deviation on the [0, 1] scale (PrivacyReID, Sec. 4.1: 0.5)."""

    sigma: float = 0.5

    def __post_init__(self) -> None:
        check_range("sigma", self.sigma, 0.01, 100.0)  # with none, it would hide nothing


class Noise(Method[NoiseConfig]):
    """Additive Gaussian noise, clipped."""

    name = "noise"
    summary = "Gaussian noise added to every value, clipped to [0, 1]"
    default = NoiseConfig()
    random = True

    def protect(self, batch: ImageBatch, *, rng: Randomness) -> Release:
        """Add each item's own noise."""
        noisy = [
            # In place: the noise alone takes as much memory as the picture.
            rng.child("noise", item).normal(*image.shape).mul_(self.config.sigma).add_(image).clamp_(0, 1)
            for image, item in zip(batch.images, batch.items, strict=True)
        ]
        return _paired(noisy[0][None] if len(noisy) == 1 else torch.stack(noisy))


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
