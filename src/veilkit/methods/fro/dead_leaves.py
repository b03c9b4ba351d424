"""Leaves laid over a picture: round and square pieces of other pictures, large ones below and small ones above.

Pictures made so have edges at all scales, as natural pictures have (dead leaves: Lee, Mumford and Huang, IJCV 2001),
and networks can learn from them alone what to look for in photographs (Baradad Jurjo et al., NeurIPS 2021). Smooth
mixtures have no edges at all, and an optimiser hardly draws any in a few steps.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor

from veilkit.rng import Randomness

_SMALLEST, _LARGEST = 0.09, 0.62  # radii, as shares of the shorter side
_PLAIN = 0.5  # how much of a leaf is the colour of its middle


def lay(picture: Tensor, sources: Tensor, count: int, rng: Randomness) -> Tensor:
    """`picture` (3, H, W) under `count` leaves, each a piece of one of `sources` (S, 3, H, W) at its own place.

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
