"""A few generated faces in memory, with their truth, drawn once."""

from __future__ import annotations

from functools import cache

import numpy as np
import torch
from torch import Tensor

from veilkit.synthetic.faces import FaceTruth, Ranges, render_face

SIDE = 192


@cache
def drawn(count: int = 3) -> tuple[Tensor, tuple[FaceTruth, ...]]:
    """(N, 3, 192, 192) in [0, 1], nearly frontal, and what is true of them."""
    ranges = Ranges(8, 5, 5, 15, 8)
    made = [render_face(5, person, 1, size=SIDE, ranges=ranges) for person in range(1, count + 1)]
    pixels = np.stack([picture for picture, _ in made])
    return torch.from_numpy(pixels).permute(0, 3, 1, 2).float().div(255), tuple(truth for _, truth in made)


def landmarks(truths: tuple[FaceTruth, ...]) -> Tensor:
    """(N, 68, 2) in pixels."""
    return torch.from_numpy(np.stack([truth.landmarks for truth in truths]))
