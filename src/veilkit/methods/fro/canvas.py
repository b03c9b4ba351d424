"""What is optimised in feature assembling, and from which pictures it starts.

Pixels are moved as they are, or by their spectrum, in which large shapes come first. Adam moves every value alike. Of
pixels that draws fine grain; of a spectrum whose coefficients count by one over their frequency, as those of natural
pictures do, it draws shapes and plain colours as well (Olah, Mordvintsev and Schubert, Distill 2017). Both canvases
hold pictures in the normalised space of a classifier's input.

Starts in place of noise are pictures of nobody in which most is drawn already: mixtures of what the originals have in
common, in which a body or a face stands in the right place, so that few steps are left to do.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal, Protocol, Self, TypeAlias

import torch
import torch.nn.functional as F
from torch import Tensor

from veilkit.errors import ConfigError, DataError
from veilkit.rng import Randomness

# Axes in which the colours of natural pictures vary almost by themselves (Ruderman et al., JOSA A 1998): light and
# dark, red against blue, and green against both; the columns' lengths are typical deviations, relative to the first.
_COLOURS = torch.tensor([[1.0, 1.0, 1.0], [0.34, 0.0, -0.34], [0.09, -0.18, 0.09]]).T
_START = 0.014  # of the coefficients of N(0, 1): a faint beginning, for fine grain that is there at first stays
_REACH = 4.0  # so far does a step of Adam move a picture, in units of its rate


Limits = tuple[Tensor, Tensor]  # lowest and highest value of each channel, (3, 1, 1) each


class Canvas(Protocol):
    """values: the leaf that an optimiser moves."""

    values: Tensor

    def picture(self) -> Tensor:
        """Pictures (N, 3, H, W), normalised."""
        ...

    def keep(self) -> None:
        """Called after each step: put values back into range, if there is one."""
        ...


class Pixels:
    """The pixels themselves, from `start` (N, 3, H, W); limits: the range that they are kept in."""

    def __init__(self, start: Tensor, limits: Limits | None) -> None:
        self._limits = limits
        self.values = start.detach().contiguous(memory_format=torch.channels_last).requires_grad_()

    def picture(self) -> Tensor:
        """The values."""
        return self.values

    def keep(self) -> None:
        """Clamp the values."""
        if self._limits is not None:
            self.values.data.clamp_(*self._limits)


class Spectrum:
    """Fourier coefficients of three colour axes; power: of 1 / frequency, by which they count.

    start: N(0, 1), of which a faint share is in the first picture. begun: the rest of that picture; none is grey.
    limits: where pictures are cut off; a coefficient by itself has no range.
    """

    def __init__(self, start: Tensor, power: float, limits: Limits | None, begun: Tensor | None = None) -> None:
        self._size = (start.shape[2], start.shape[3])
        self._weights = _falling(self._size, power) * _REACH
        self._limits = limits
        coefficients = torch.fft.rfft2(start.detach(), norm="ortho") * _START
        if begun is not None:
            axes = torch.einsum("nchw,ac->nahw", begun, torch.linalg.inv(_COLOURS))
            coefficients = coefficients + torch.fft.rfft2(axes, norm="ortho") / self._weights
        self.values = torch.view_as_real(coefficients).contiguous().requires_grad_()

    def picture(self) -> Tensor:
        """The pictures of these coefficients."""
        weighted = torch.view_as_complex(self.values) * self._weights
        axes = torch.fft.irfft2(weighted, s=self._size, norm="ortho")
        drawn = torch.einsum("nahw,ca->nchw", axes, _COLOURS).contiguous(memory_format=torch.channels_last)
        return drawn if self._limits is None else torch.clamp(drawn, *self._limits)

    def keep(self) -> None:
        """Nothing: pictures are cut off as they are drawn."""


def _falling(size: tuple[int, int], power: float) -> Tensor:
    """(H, W // 2 + 1): frequency to the -power, of mean 1; the lowest frequency counts as the first above zero."""
    height, width = size
    down, across = torch.fft.fftfreq(height)[:, None], torch.fft.rfftfreq(width)[None]
    frequency = (down.square() + across.square()).sqrt().clamp(min=1 / max(size))
    weights: Tensor = frequency.pow(-power)
    return weights / weights.mean()


FEWEST = 64  # pictures; of fewer, the axes would show the pictures themselves
_SHARED = 16  # pictures for each axis at least, so that no axis belongs to one of them
_MOST_AXES = 128
_MOST_PICTURES = 4096


@dataclass(frozen=True, slots=True)
class PrincipalComponents:
    """mean: (3, h, w) in [0, 1]. axes: (K, 3, h, w), principal components, each one standard deviation long."""

    mean: Tensor
    axes: Tensor

    @classmethod
    def of(cls, pixels: Tensor) -> Self:
        """Of pictures (N, 3, H, W) of 8 bits, at half their size; of very many, some at equal distances."""
        if len(pixels) < FEWEST:
            raise DataError(f"expected at least {FEWEST} pictures to see what they have in common, got {len(pixels)}")
        count = min(len(pixels), _MOST_PICTURES)
        some = pixels[torch.arange(count) * len(pixels) // count]
        small = torch.cat([F.avg_pool2d(part.float().div(255), 2) for part in torch.split(some, 256)])
        mean = small.mean(0)
        apart = (small - mean).flatten(1)
        wanted = min(_MOST_AXES, count // _SHARED, apart.shape[1])
        if count <= apart.shape[1]:
            _, mixtures = torch.linalg.eigh(apart @ apart.T)  # ascending
            axes = mixtures.flip(1)[:, :wanted].T @ apart / count**0.5
        else:
            variances, directions = torch.linalg.eigh(apart.T @ apart / count)
            axes = (directions * variances.clamp(min=0).sqrt()).flip(1)[:, :wanted].T
        return cls(mean, axes.reshape(wanted, *mean.shape).contiguous())

    def mixed(self, weights: Tensor, size: tuple[int, int]) -> Tensor:
        """Pictures (N, 3, *size) in [0, 1] of `weights` (N, K): drawn from N(0, 1), they vary as the set does."""
        drawn = self.mean + torch.einsum("nk,kchw->nchw", weights, self.axes)
        return F.interpolate(drawn, size=size, mode="bilinear", align_corners=False).clamp(0, 1)


_SMALLEST, _LARGEST = 0.09, 0.62  # radii, as shares of the shorter side
_PLAIN = 0.5  # how much of a leaf is the colour of its middle


def dead_leaves(picture: Tensor, sources: Tensor, count: int, rng: Randomness) -> Tensor:
    """A dead leaves image: `picture` (3, H, W) under `count` pieces of `sources` (S, 3, H, W).

    Radii have the density r^-3, under which a picture's statistics are the same at every scale; half of the leaves
    are ellipses and half rectangles, turned and drawn out at random.
    """
    height, width = picture.shape[1:]
    shorter = min(height, width)
    small, large = _SMALLEST**-2, _LARGEST**-2
    radii = (small - (small - large) * rng.child("radius").uniform(count)).rsqrt().sort(descending=True).values
    radii = radii * shorter
    stretch = rng.child("stretch").normal(count).mul(0.5).exp()
    angles = rng.child("angle").uniform(count) * math.pi
    middles = rng.child("middle").uniform(count, 2)
    square = rng.child("square").uniform(count) < 0.5
    taken = (rng.child("source").uniform(count) * len(sources)).long()
    rows, columns = torch.arange(height)[:, None], torch.arange(width)[None]
    laid = picture.clone()
    for leaf in range(count):
        row, column = int(middles[leaf, 0] * height), int(middles[leaf, 1] * width)
        down, across = rows - row, columns - column
        cosine, sine = angles[leaf].cos(), angles[leaf].sin()
        along = (across * cosine + down * sine) / (radii[leaf] * stretch[leaf])
        aside = (down * cosine - across * sine) / (radii[leaf] / stretch[leaf])
        inside = torch.maximum(along.abs(), aside.abs()) < 1 if square[leaf] else along.square() + aside.square() < 1
        source = sources[taken[leaf]]
        laid = torch.where(inside, torch.lerp(source, source[:, row, column, None, None], _PLAIN), laid)
    return laid


Start: TypeAlias = Literal["noise", "looks", "leaves", "figures"]
_LEAVES, _SOURCES = 40, 8  # on each picture, and mixtures that they are taken from
_CAMERAS = 12  # that generated people are seen by


def start_pictures(
    start: Start,
    size: tuple[int, int],
    components: PrincipalComponents | None,
    rng: Randomness,
    items: tuple[str, ...],
) -> Tensor:
    """One picture for each item, (N, 3, *size) in [0, 1], drawn under its name."""
    if start == "figures":
        return _figures(size, rng, items)
    if components is None:
        raise ConfigError(
            f"start={start} needs the principal components of the originals, which this classifier does not have (it "
            f"was brought along, or trained on fewer than {FEWEST} pictures); train one with `veilkit fit fro`, or "
            "take a preset that begins with noise, such as spectral"
        )
    count = len(components.axes)
    mixed = components.mixed(torch.stack([rng.child("looks", item).normal(count) for item in items]), size)
    if start == "looks":
        return mixed
    laid = []
    for picture, item in zip(mixed, items, strict=True):
        own = rng.child("leaves", item)
        laid.append(
            dead_leaves(picture, components.mixed(own.child("looks").normal(_SOURCES, count), size), _LEAVES, own)
        )
    return torch.stack(laid)


def _figures(size: tuple[int, int], rng: Randomness, items: tuple[str, ...]) -> Tensor:
    from veilkit.synthetic.people.render import render_person  # only who draws people pays for these imports

    height, width = size
    if height < width:
        raise ConfigError(
            f"start=figures draws people from head to foot, but pictures of {height}x{width} are wider than high; "
            "begin with looks or leaves"
        )
    drawn = []
    for item in items:
        own = rng.child("figure", item)
        person, camera = own.child("person").integer(1, 2**31), own.child("camera").integer(1, _CAMERAS + 1)
        drawn.append(torch.from_numpy(render_person(0, person, camera, 0, height=height, width=width).copy()))
    return torch.stack(drawn).permute(0, 3, 1, 2).float().div(255)
