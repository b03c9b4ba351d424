"""The grid along which pictures were cut, found from the pictures themselves, and how well its patches fit together.

Patches side by side are compared by Mahalanobis gradient compatibility (Gallagher 2012).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from torch import Tensor

from veilkit.attacks.pictures import Pictures, SomePictures

Floats = NDArray[np.float32]
Indices = NDArray[np.int64]
Patches = NDArray[np.float32]
"""(P, h, w, 3) in [0, 1]: picture by picture, in each row by row."""

_SAMPLED = 64  # pictures are enough to see a grid
_SMALLEST = 4  # pixels: a cell's side; below, a seam has no surroundings to differ from
_JUMP = 1.5  # times the steps beside it: compression of 8 x 8 blocks stays below 1.2, cuts reach 3 and more
_SURE = 6.0  # robust standard deviations above the other steps
_FLAT = 2.0 / 255.0  # a cell of less contrast is one colour
_MOST_FLAT = 0.75  # a share of such cells above this is a mosaic
_LEAST_STEP = 3.0 / 255.0  # standard deviation that every side is granted: rounding, and compression
_LEAST_COST = 0.05  # in each pixel of a seam; below, costs are made of rounding
_AT_ONCE = 4_000_000  # pairs whose costs are held at a time


@dataclass(frozen=True, slots=True)
class Grid:
    """Cells of `height` x `width` pixels, from the top left corner of pictures of one size; the last may be cut."""

    height: int
    width: int

    def shape(self, size: tuple[int, int]) -> tuple[int, int]:
        """Rows and columns in pictures of a size (H, W)."""
        return -(-size[0] // self.height), -(-size[1] // self.width)

    def cut(self, images: Tensor) -> Patches:
        """Images (N, 3, H, W) to patches (N rows columns, h, w, 3); cut ones are filled up with their last pixels."""
        count, _, height, width = images.shape
        rows, columns = self.shape((height, width))
        margin = (0, columns * self.width - width, 0, rows * self.height - height)
        full = F.pad(images, margin, mode="replicate") if any(margin) else images
        cells = full.reshape(count, 3, rows, self.height, columns, self.width).permute(0, 2, 4, 3, 5, 1)
        return cells.reshape(-1, self.height, self.width, 3).contiguous().numpy()

    def join(self, patches: Patches, size: tuple[int, int]) -> Tensor:
        """The images (N, 3, H, W) of patches that were cut at this size."""
        rows, columns = self.shape(size)
        cells = torch.from_numpy(patches).reshape(-1, rows, columns, self.height, self.width, 3)
        full = cells.permute(0, 5, 1, 3, 2, 4).reshape(-1, 3, rows * self.height, columns * self.width)
        return full[:, :, : size[0], : size[1]].contiguous()


def find_grid(pictures: Pictures) -> Grid | None:
    """The grid along which pictures of one size were cut; None where no seams are seen, or the cells hold nothing.

    A cut leaves steps between two lines of pixels that are larger than those before and after, at regular distances
    and in all pictures. The cells of a mosaic have seams as well, but hold one colour each: nothing to reassemble.
    """
    chosen = np.unique(np.linspace(0, len(pictures) - 1, _SAMPLED).astype(np.int64))
    height, width = (int(side) for side in pictures.sizes[0])
    if min(height, width) < 2 * _SMALLEST:
        return None
    down, across, seen = np.zeros(height - 1), np.zeros(width - 1), []
    for _, images in SomePictures(pictures, chosen).batches():
        down += (images[:, :, 1:] - images[:, :, :-1]).abs().mean(dim=(1, 3)).sum(dim=0).double().numpy()
        across += (images[..., 1:] - images[..., :-1]).abs().mean(dim=(1, 2)).sum(dim=0).double().numpy()
        seen.append(images)
    grid = Grid(_period(down / len(chosen)) or height, _period(across / len(chosen)) or width)
    if grid == Grid(height, width):
        return None
    contrast = np.concatenate([grid.cut(images).std(axis=(1, 2)).max(axis=1) for images in seen])
    return None if (contrast < _FLAT).mean() > _MOST_FLAT else grid


def _period(steps: NDArray[np.float64]) -> int | None:
    """The smallest distance at which every step (side - 1,) stands out from its neighbours and from the others."""
    side = len(steps) + 1
    middle = float(np.median(steps))
    spread = 1.4826 * float(np.median(np.abs(steps - middle))) + 1e-6
    beside = np.empty_like(steps)
    beside[1:-1] = (steps[:-2] + steps[2:]) / 2
    beside[[0, -1]] = np.inf
    stands_out = (steps > _JUMP * beside) & (steps > middle + _SURE * spread)
    for period in range(_SMALLEST, -(-side // 2) + 1):
        if stands_out[period - 1 :: period].all():
            return period
    return None


@dataclass(frozen=True, slots=True, eq=False)
class Seams:
    """Seams between n patches in one direction: q to the right of p, or q below p.

    The steps inside p, from the line before its last to the last, have a mean m and a covariance S (3 x 3). If q
    follows p, the steps d_k from p's last line to q's first are of the same kind, so that the mean over k of
    (d_k - m)' inv(S) (d_k - m) is small; the same is asked of q's first lines, looking back. The cost is the sum of
    both logarithms. Each of the two is a product of a row of p and a row of q, (n, D).
    """

    onward: tuple[Floats, Floats]
    back: tuple[Floats, Floats]

    @classmethod
    def right_of(cls, patches: Patches) -> Seams:
        """Seams with the right neighbour."""
        last, before = patches[:, :, -1] - 0.5, patches[:, :, -2] - 0.5
        first, second = patches[:, :, 0] - 0.5, patches[:, :, 1] - 0.5
        return cls((_expects(last, before), _offers(first)), (_offers(last), _expects(first, second)))

    @classmethod
    def below(cls, patches: Patches) -> Seams:
        """Seams with the neighbour below."""
        return cls.right_of(patches.transpose(0, 2, 1, 3))

    def __len__(self) -> int:
        return len(self.back[0])

    def costs(self, first: Indices, second: Indices) -> Floats:
        """(len(first), len(second)): the cost of each of `second` following each of `first`; lower fits better."""
        onward = self.onward[0][first] @ self.onward[1][second].T
        back = self.back[0][first] @ self.back[1][second].T
        np.maximum(onward, _LEAST_COST, out=onward)
        np.maximum(back, _LEAST_COST, out=back)
        onward *= back
        costs: Floats = np.log(onward, out=onward)
        costs[first[:, None] == second[None, :]] = np.inf  # nothing follows itself
        return costs

    def best(self, first: Indices, second: Indices) -> tuple[Indices, Indices]:
        """For each of `first` the best that follows among `second`, and for each of `second` the best before it."""
        follows, precedes = np.empty(len(first), dtype=np.int64), np.zeros(len(second), dtype=np.int64)
        lowest = np.full(len(second), np.inf, dtype=np.float32)
        rows = max(1, _AT_ONCE // max(1, len(second)))
        for start in range(0, len(first), rows):
            part = first[start : start + rows]
            costs = self.costs(part, second)
            follows[start : start + rows] = second[costs.argmin(axis=1)]
            place = costs.argmin(axis=0)
            values = costs[place, np.arange(len(second))]
            better = values < lowest
            precedes[better], lowest[better] = part[place[better]], values[better]
        return follows, precedes


def _expects(last: Floats, before: Floats) -> Floats:
    """(n, D) weights of what `_offers` gives, so that their product is the mean squared Mahalanobis distance."""
    length = last.shape[1]
    steps = last - before
    mean = steps.mean(axis=1, keepdims=True)
    spread = np.einsum("nki,nkj->nij", steps - mean, steps - mean) / max(1, length - 1)
    weight = np.linalg.inv(spread + np.eye(3, dtype=np.float32) * np.float32(_LEAST_STEP**2)).astype(np.float32)
    expected = last + mean
    linear = np.einsum("nij,nkj->nki", weight, expected)
    constant = np.einsum("nki,nki->n", linear, expected)
    parts = [constant[:, None], -2 * linear.reshape(len(last), -1), weight.reshape(len(last), 9)]
    weights: Floats = (np.concatenate(parts, axis=1) / length).astype(np.float32)
    return weights


def _offers(first: Floats) -> Floats:
    """(n, D): one, the line of pixels, and the sum of its outer products."""
    outer = np.einsum("nki,nkj->nij", first, first).reshape(len(first), 9)
    one = np.ones((len(first), 1), dtype=np.float32)
    return np.concatenate([one, first.reshape(len(first), -1), outer], axis=1).astype(np.float32)
