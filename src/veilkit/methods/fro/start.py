"""Starts of feature assembling in place of noise: pictures of nobody, in which most is drawn already."""

from __future__ import annotations

import math
from typing import Literal, TypeAlias

import torch
from torch import Tensor

from veilkit.errors import ConfigError
from veilkit.methods.fro.principal_components import FEWEST, PrincipalComponents
from veilkit.rng import Randomness

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
