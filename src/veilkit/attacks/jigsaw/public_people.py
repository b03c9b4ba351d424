"""Public pictures for attackers who were given none: generated people, whom anybody can draw."""

from __future__ import annotations

from functools import lru_cache

import numpy as np
import torch
from torch import Tensor

from veilkit.attacks.pictures import Pictures, resized
from veilkit.synthetic.people import render_person

_WORLD = 271828  # a seed of its own: nobody from here is in a set that somebody protects
_CAMERAS = 8
_SMALLEST, _LARGEST = (32, 16), (256, 128)


def public_images(public: Pictures | None, size: tuple[int, int], count: int) -> tuple[Tensor, str]:
    """At most `count` public images (N, 3, H, W) of a size (H, W), evenly chosen, and what they are.

    Generated people where there are fewer than 4.
    """
    if public is None or len(public) < 4:
        return _people(size, count), "generated people"
    chosen = np.unique(np.linspace(0, len(public) - 1, count).astype(np.int64))
    return torch.cat([resized(public.load(int(i))[None], size) for i in chosen]), "given"


@lru_cache(maxsize=2)
def _people(size: tuple[int, int], count: int) -> Tensor:
    height, width = (min(max(side, least), most) for side, least, most in zip(size, _SMALLEST, _LARGEST, strict=True))
    drawn = [
        render_person(_WORLD, identity, 1 + identity % _CAMERAS, 0, height=height, width=width)
        for identity in range(1, count + 1)
    ]
    return resized(torch.from_numpy(np.stack(drawn)).permute(0, 3, 1, 2).float() / 255, size)
