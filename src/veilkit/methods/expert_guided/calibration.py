"""How far apart different people are for an expert: the unit in which a scale-free threshold is given."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from veilkit.errors import DataError
from veilkit.experts.base import Embedder
from veilkit.training.pixels import read_pixels
from veilkit.types import Split

_MOST = 512  # pictures: 130 thousand pairs, of which one number is wanted
_PEOPLE = 32
_SIZE = (128, 64)
_BATCH = 32


def spread(features: Tensor, people: Sequence[object]) -> float:
    """The mean of ||f(a) - f(b)||^2 over all pairs of pictures (N, D) of different people."""
    number = {person: place for place, person in enumerate(dict.fromkeys(people))}
    who = torch.tensor([number[person] for person in people])
    exact = features.double()
    squares = exact.square().sum(1)
    apart = squares[:, None] + squares[None] - 2 * exact @ exact.T
    different = who[:, None] != who[None]
    if not different.any():
        raise DataError("calibration needs pictures of at least two different people; say who is in them with labels")
    return apart[different].mean().item()


@torch.no_grad()
def spread_of_split(expert: Embedder, split: Split) -> float:
    """The spread over pictures of known people, up to 512 of them taken evenly."""
    known = [record for record in split.records if record.identity is not None]
    chosen = [
        known[int(place)] for place in np.unique(np.linspace(0, len(known) - 1, min(_MOST, len(known))).astype(int))
    ]
    pixels = read_pixels(Split(split.name, split.root, tuple(chosen)), _input_size(expert))
    features = [expert.embed(part.float().div(255)) for part in torch.split(pixels, _BATCH)]
    return spread(torch.cat(features), [record.identity for record in chosen])


@torch.no_grad()
def spread_of_generated(expert: Embedder) -> float:
    """The spread over 32 generated people, where nobody gave pictures: the same for everyone."""
    from veilkit.synthetic.people.render import render_person  # only who has no pictures pays for its import

    height, width = (max(side, least) for side, least in zip(_input_size(expert), (32, 16), strict=True))
    pictures = [
        torch.from_numpy(render_person(0, person, 1 + person % 4, 0, height=height, width=width).copy())
        for person in range(1, _PEOPLE + 1)
    ]
    images = torch.stack(pictures).permute(0, 3, 1, 2).float().div(255).contiguous()
    return spread(expert.embed(images), range(_PEOPLE))


def _input_size(expert: Embedder) -> tuple[int, int]:
    prepared = expert.info.preprocessing
    return _SIZE if prepared is None else prepared.size
