"""How well two patches fit side by side: Mahalanobis gradient compatibility (Gallagher 2012)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from veilkit.attacks.jigsaw.grid import Patches

Floats = NDArray[np.float32]
Indices = NDArray[np.int64]

_LEAST_STEP = 3.0 / 255.0  # standard deviation that every side is granted: rounding, and compression
_LEAST_COST = 0.05  # in each pixel of a seam; below, costs are made of rounding
_AT_ONCE = 4_000_000  # pairs whose costs are held at a time


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
