"""Views of a picture, mirrored and shifted, each with a teacher's logits on just that view.

A student that sees a shifted picture but is told what the teacher said of the picture at rest learns to ignore what
the teacher heeds. Views keep both together, and give it more to learn from than there are pictures.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Self

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from veilkit.errors import DataError

_FAR, _NEAR = 10 / 256, 5 / 256  # of a picture's height, as AGW's random crops reach
# Mirrored or not, then how far down and to the right, in shares of the height. The first is the picture at rest.
MOVES: NDArray[np.float32] = np.array(
    [
        (0, 0, 0), (1, 0, 0), (0, _FAR, -_NEAR), (1, -_FAR, _NEAR),
        (0, _NEAR, _FAR), (1, -_NEAR, -_FAR), (0, -_FAR, -_FAR), (1, _FAR, _FAR),
    ],
    dtype=np.float32,
)  # fmt: skip
_BATCH = 64


@dataclass(frozen=True, slots=True, eq=False)
class Views:
    """moves: (K, 3). logits: (K, N, C), a teacher's on each of N pictures moved so, before any softmax."""

    moves: NDArray[np.float32]
    logits: NDArray[np.float32]

    def __post_init__(self) -> None:
        if self.moves.ndim != 2 or self.moves.shape[1] != 3 or not len(self.moves):
            raise DataError(f"expected moves of shape (views, 3), but got {self.moves.shape}")
        if self.logits.ndim != 3 or len(self.logits) != len(self.moves):
            raise DataError(
                f"expected logits of shape ({len(self.moves)}, pictures, classes), but got {self.logits.shape}"
            )

    @classmethod
    def seen_by(cls, teacher: Callable[[Tensor], Tensor], pixels: Tensor) -> Self:
        """What a teacher says of 8-bit pictures (N, 3, H, W): it takes images (n, 3, H, W) in [0, 1] to logits."""
        parts = [views_logits(teacher, some.float().div(255)) for some in torch.split(pixels, _BATCH)]
        return cls(MOVES, np.concatenate(parts, axis=1))

    def some(self, places: NDArray[np.int64]) -> Views:
        """Of some of the pictures."""
        return Views(self.moves, self.logits[:, places])


def views_logits(teacher: Callable[[Tensor], Tensor], images: Tensor) -> NDArray[np.float32]:
    """(K, n, C): the teacher's logits on images (n, 3, H, W) in [0, 1] in each view."""
    return np.stack([teacher(moved(images, move)).numpy() for move in MOVES])


def moved(images: Tensor, move: NDArray[np.float32]) -> Tensor:
    """Images (N, 3, H, W) mirrored and shifted; what comes in from outside is black."""
    height, width = images.shape[2:]
    down, across = (round(float(share) * height) for share in move[1:])
    seen = images.flip(3) if move[0] else images
    if not down and not across:
        return seen
    laid = torch.zeros_like(seen)
    rows, columns = _overlap(down, height), _overlap(across, width)
    laid[:, :, rows[0], columns[0]] = seen[:, :, rows[1], columns[1]]
    return laid


def _overlap(shift: int, length: int) -> tuple[slice, slice]:
    """Where values go to, and where they come from."""
    shift = max(-length, min(length, shift))
    return slice(max(shift, 0), length + min(shift, 0)), slice(max(-shift, 0), length - max(shift, 0))
