"""What became of each original in reassembled pictures. For scoring only: an adversary has no originals."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray

from veilkit.attacks.jigsaw.grid import Floats, Grid, Indices, Patches

_TOLERANCE = 4.0 / 255.0  # root mean square of smoothed patches: compression and resizing stay below, others above
_POINTS = 8  # a side, to which patches are averaged before they are compared
_AT_ONCE = 4_000_000


@dataclass(frozen=True, slots=True, eq=False)
class Truth:
    """Which patch of M originals each patch of a release is.

    content (M, rows, columns): a number for what each original patch holds; equal patches share one. released (P,):
    the number of each released patch, or -1 where it equals no original patch.
    """

    content: Indices
    released: Indices

    @classmethod
    def of(cls, released: Patches, originals: Patches, grid: Grid, size: tuple[int, int]) -> Truth:
        """Compare patches cut along `grid` from pictures of `size`: at 8 bit first, and the rest by the nearest."""
        rows, columns = grid.shape(size)
        first: dict[bytes, int] = {}
        content = [first.setdefault(code, place) for place, code in enumerate(_codes(originals))]
        found = np.array([first.get(code, -1) for code in _codes(released)], dtype=np.int64)
        place = np.arange(len(released)) % (rows * columns)
        for last_row in (False, True):  # the last row and column may be cut off: only what is left is compared
            for last_column in (False, True):
                kind = (place // columns == rows - 1) == last_row
                kind &= (place % columns == columns - 1) == last_column
                kind &= found < 0
                height = size[0] - (rows - 1) * grid.height if last_row else grid.height
                width = size[1] - (columns - 1) * grid.width if last_column else grid.width
                if kind.any():
                    nearest = _nearest(released[kind, :height, :width], originals[:, :height, :width])
                    found[kind] = np.where(nearest >= 0, np.array(content)[nearest], -1)
        return cls(np.array(content, dtype=np.int64).reshape(-1, rows, columns), found)

    def neighbours(self, order: Indices) -> NDArray[np.float64]:
        """(M,): the share of each original's pairs of neighbours who are neighbours again, in the same direction.

        order (P,): the released patch in each slot, picture by picture and row by row.
        """
        board = self.released[order].reshape(-1, *self.content.shape[1:])
        hits, pairs = np.zeros(len(self.content)), 0
        for axis in (1, 2):
            now, then = _pairs(board, axis), _pairs(self.content, axis)
            there = np.unique(now[(now >= 0).all(axis=-1)], axis=0)
            keys = set(map(tuple, there.tolist()))
            hits += [sum(pair in keys for pair in map(tuple, each)) for each in then.tolist()]
            pairs += then.shape[1]
        return hits / max(1, pairs)

    def gathered(self, order: Indices) -> tuple[NDArray[np.float64], Indices]:
        """(M,): the largest share of each original's patches in one picture, and which that is (-1: in none)."""
        cells = self.content[0].size
        board = self.released[order].reshape(-1, cells)
        table = np.zeros((len(self.content), len(board)), dtype=np.int64)
        picture, slot = np.nonzero(board >= 0)
        np.add.at(table, (board[picture, slot] // cells, picture), 1)
        most = table.max(axis=1)
        return np.minimum(most / cells, 1.0), np.where(most > 0, table.argmax(axis=1), -1)


def _codes(patches: Patches) -> list[bytes]:
    return [np.rint(255 * patch).astype(np.uint8).tobytes() for patch in patches]


def _pairs(board: Indices, axis: int) -> Indices:
    """(N, pairs, 2): what lies in each two slots that follow one another along an axis of (N, rows, columns)."""
    length = board.shape[axis]
    before, after = np.take(board, range(length - 1), axis=axis), np.take(board, range(1, length), axis=axis)
    return np.stack([before, after], axis=-1).reshape(len(board), -1, 2)


def _nearest(patches: Patches, among: Patches) -> Indices:
    """(p,): the place of the nearest patch, or -1 where none is near."""
    wanted, known = _averaged(patches), _averaged(among)
    found = np.empty(len(wanted), dtype=np.int64)
    squares = np.square(known).sum(axis=1)
    rows = max(1, _AT_ONCE // len(known))
    for start in range(0, len(wanted), rows):
        part = wanted[start : start + rows]
        distance = squares[None] - 2 * part @ known.T
        best = distance.argmin(axis=1)
        error = distance[np.arange(len(part)), best] + np.square(part).sum(axis=1)
        found[start : start + rows] = np.where(error / part.shape[1] <= _TOLERANCE**2, best, -1)
    return found


def _averaged(patches: Patches) -> Floats:
    """(p, 192): patches of any size, averaged to 8 x 8 points of 3 colours, about grey."""
    images = torch.from_numpy(np.ascontiguousarray(patches)).permute(0, 3, 1, 2) - 0.5
    return F.adaptive_avg_pool2d(images, _POINTS).flatten(1).numpy()
