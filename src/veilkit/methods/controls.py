"""The usual controls, one image at a time: blur, pixelation, noise, solid mask.

Lengths in pixels are those of a picture 256 pixels high and scale with the picture (`at_height`; 0: never scale), so
that a control is as strong on a 128x64 crop as on a photograph.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

import torch
import torch.nn.functional as F
from torch import Tensor

from veilkit.configs import check_range, check_ranges
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
    videos = True

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
    videos = True

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
    videos = True
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
        check_ranges(self, {"top bottom left right": (0, 1)})
        if self.top >= self.bottom or self.left >= self.right:
            raise ConfigError("the mask must have top < bottom and left < right, or it would hide nothing")


class Mask(Method[MaskConfig]):
    """A solid box: over everything, or over the head of a person crop (preset `head`)."""

    name = "mask"
    summary = "a solid box over the picture, or over the head of a person crop"
    default = MaskConfig()
    videos = True
    presets = {"head": MaskConfig(bottom=0.22)}  # noqa: RUF012 - Mapping in the base class

    def place(self) -> tuple[float, float, float, float]:
        """See `ChangesPlace`."""
        return self.config.top, self.config.bottom, self.config.left, self.config.right

    def protect(self, batch: ImageBatch, *, rng: Randomness) -> Release:
        """Fill the box; it is rounded outwards so that it never covers less than asked for."""
        config, images = self.config, batch.images.clone()
        height, width = images.shape[-2:]
        top, bottom, left, right = self.place()
        rows = slice(int(top * height), -int(-bottom * height // 1))
        columns = slice(int(left * width), -int(-right * width // 1))
        box = images[:, :, rows, columns]
        if config.colour == "mean":
            box.copy_(box.mean(dim=(2, 3), keepdim=True).expand_as(box))
        else:
            box.fill_({"black": 0.0, "grey": 0.5, "white": 1.0}[config.colour])
        return _paired(images)


_LONG_KERNEL = 127  # taps from which on the Fourier transform is quicker
_FAR = 1_024  # pixels: a radius beyond this and beyond the row is folded into the row
_ROWS, _VALUES = 256, 2**22  # rows, and padded values, that are filtered at once
_PLAIN = 16_384  # values: a longer transform of a length with large prime factors takes minutes
_SUMMED = 2**20  # taps that are added up one by one


def convolved(rows: Tensor, sigma: float, radius: int) -> Tensor:
    """Each row of a matrix (H, W) convolved with a Gaussian that is cut at `radius`; the edges repeat.

    Long ones go through the Fourier transform: on a photograph of 4000 pixels a side the direct way takes minutes.
    """
    length = rows.shape[1]
    if radius > max(length, _FAR):
        return _folded(rows, sigma, radius)
    kernel = weights(radius, sigma)
    kernel /= kernel.sum()
    padded_length = _quick(length + 2 * radius)
    transfer = torch.fft.rfft(kernel, n=padded_length)
    result = torch.empty(rows.shape)
    at_once = min(_ROWS, max(1, _VALUES // padded_length))
    for part, target in zip(torch.split(rows, at_once), torch.split(result, at_once), strict=True):
        padded = F.pad(part[None], (radius, radius), mode="replicate")[0]
        if len(kernel) <= _LONG_KERNEL:
            target.copy_(F.conv1d(padded[:, None], kernel[None, None])[:, 0])
        else:
            filtered = torch.fft.irfft(torch.fft.rfft(padded, n=padded_length).mul_(transfer), n=padded_length)
            target.copy_(filtered[:, len(kernel) - 1 : len(kernel) - 1 + length])
    return result


def weights(radius: int, sigma: float) -> Tensor:
    """A Gaussian's values at -radius ... radius, 1 in the middle."""
    return torch.exp(-0.5 * (torch.arange(-radius, radius + 1, dtype=torch.float32) / sigma) ** 2)


def _folded(rows: Tensor, sigma: float, radius: int) -> Tensor:
    """The same for a Gaussian longer than the rows: all that falls beyond an edge falls on one value, the edge's."""
    length = rows.shape[1]
    near = weights(length - 1, sigma).double()
    half = near[length - 1 :]  # at 0, 1 ... length - 1
    total = _total(sigma, radius)
    beyond = (total - 2 * half.sum() + half[0]) / 2
    from_here = half.flip(0).cumsum(0).flip(0)  # the sum of what is at i and further
    before = ((beyond + torch.cat([from_here[1:], from_here.new_zeros(1)])) / total).float()  # at -1 - i and further
    padded_length = _quick(3 * length - 2)
    transfer = torch.fft.rfft((near / total).float(), n=padded_length)
    result = torch.empty(rows.shape)
    at_once = min(_ROWS, max(1, _VALUES // padded_length))
    for part, target in zip(torch.split(rows, at_once), torch.split(result, at_once), strict=True):
        filtered = torch.fft.irfft(torch.fft.rfft(part, n=padded_length).mul_(transfer), n=padded_length)
        target.copy_(filtered[:, length - 1 : 2 * length - 1])
        target.addcmul_(part[:, :1], before[None]).addcmul_(part[:, -1:], before.flip(0)[None])
    return result


def _quick(length: int) -> int:
    """A length from there on that the Fourier transform is quick for; short ones are quick enough as they are."""
    from scipy.fft import next_fast_len  # only what blurs has to pay for it

    return length if length <= _PLAIN else int(next_fast_len(length, real=True))


def _total(sigma: float, radius: int) -> float:
    """The sum of a Gaussian's values at -radius ... radius; of very many of them, their integral."""
    if radius <= _SUMMED:
        return float(weights(radius, sigma).double().sum())
    return sigma * math.sqrt(2 * math.pi) * math.erf((radius + 0.5) / (sigma * math.sqrt(2)))
