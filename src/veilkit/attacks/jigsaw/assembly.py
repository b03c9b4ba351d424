"""Putting patches of a group of pictures together again: trees of seams first, then exact assignments."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.optimize import linear_sum_assignment

from veilkit.attacks.jigsaw.grid import Floats, Indices
from veilkit.rng import Randomness

_SWEEPS = 60  # at most; it usually ends after a dozen
_QUIET = 6  # sweeps without a change, each with other slots, and it ends
_SLOTS = 256  # reassigned at a time, which bounds the time of large groups
_NEVER = np.float32(-1e4)

Place = tuple[int, int]


@dataclass(frozen=True, slots=True, eq=False)
class Puzzle:
    """n patches for the n slots of pictures with a grid of `shape`; all values are nats, higher fits better.

    right, below, source: (n, n) of patch j being to the right of i, below i, in i's picture. places: (n, rows
    columns) of a patch being in a place. kept: patches may only change pictures, not places (patch i is in place
    i % (rows columns)).
    """

    right: Floats
    below: Floats
    source: Floats
    places: Floats
    shape: tuple[int, int]
    kept: bool = False


def assemble(puzzle: Puzzle, rng: Randomness) -> Indices:
    """(n,): for each slot, picture by picture and row by row, the patch that belongs there."""
    board = _Board(puzzle)
    for tree in sorted(_trees(puzzle), key=len, reverse=True):
        board.lay(tree)
    board.fill()
    quiet = 0
    for sweep in range(_SWEEPS):
        quiet = 0 if board.improve(rng.child("sweep", sweep)) else quiet + 1
        if quiet == _QUIET:
            break
    return board.patch


def _trees(puzzle: Puzzle) -> list[dict[int, Place]]:
    """Patches joined along seams that are more likely true than not, the surest first; {patch: (row, column)}.

    A seam is left out where two patches would lie on one another or the tree would outgrow the picture. Patches
    that keep their places have them from the start, and are joined only to those of the next place.
    """
    rows, columns = puzzle.shape
    count = len(puzzle.right)
    cells = rows * columns
    found = []
    for vertical, table in ((0, puzzle.right), (1, puzzle.below)):
        a, b = np.nonzero(table > 0)
        found.append((table[a, b], a, b, np.full(len(a), vertical)))
    odds, first, second, down = (np.concatenate(each) for each in zip(*found, strict=True))
    order = np.argsort(-odds, kind="stable")
    tree = [{i: divmod(i % cells, columns) if puzzle.kept else (0, 0)} for i in range(count)]
    for p, q, step in zip(first[order].tolist(), second[order].tolist(), down[order].tolist(), strict=True):
        one, other = tree[p], tree[q]
        if one is other:
            continue
        (row, column), (row_q, column_q) = one[p], other[q]
        shift = (row + step - row_q, column + 1 - step - column_q)
        if puzzle.kept and shift != (0, 0):
            continue
        moved = {patch: (r + shift[0], c + shift[1]) for patch, (r, c) in other.items()}
        if set(moved.values()) & set(one.values()) or not _fits({**one, **moved}, puzzle.shape):
            continue
        one.update(moved)
        for patch in moved:
            tree[patch] = one
    return list({id(each): each for each in tree}.values())


def _fits(tree: dict[int, Place], shape: tuple[int, int]) -> bool:
    rows, columns = [r for r, _ in tree.values()], [c for _, c in tree.values()]
    return max(rows) - min(rows) < shape[0] and max(columns) - min(columns) < shape[1]


class _Board:
    """The slots, and which patch lies in each (-1: none yet)."""

    def __init__(self, puzzle: Puzzle) -> None:
        self.puzzle = puzzle
        count = len(puzzle.right)
        self._rows, self._columns = puzzle.shape
        self._cells = self._rows * self._columns
        self._pictures = count // self._cells
        self.patch: Indices = np.full(count, -1, dtype=np.int64)
        slot = np.arange(count)
        row, column = slot % self._cells // self._columns, slot % self._columns
        self._around = (
            (np.where(column > 0, slot - 1, -1), puzzle.right, True),
            (np.where(column < self._columns - 1, slot + 1, -1), puzzle.right, False),
            (np.where(row > 0, slot - self._columns, -1), puzzle.below, True),
            (np.where(row < self._rows - 1, slot + self._columns, -1), puzzle.below, False),
        )
        self._parity = (row + column) % 2

    def lay(self, tree: dict[int, Place]) -> None:
        """Put a tree of at least two patches where it fits best without moving others; else leave it to `fill`."""
        if len(tree) < 2:
            return
        patches = np.array(list(tree), dtype=np.int64)
        place = np.array(list(tree.values()), dtype=np.int64)
        if not self.puzzle.kept:
            place -= place.min(axis=0)
        down, across = np.array(self.puzzle.shape) - place.max(axis=0)
        best, slots = -np.inf, None
        for top, left in [(0, 0)] if self.puzzle.kept else np.ndindex(int(down), int(across)):
            inside = (place[:, 0] + top) * self._columns + place[:, 1] + left
            for picture in range(self._pictures):
                wanted = picture * self._cells + inside
                if (self.patch[wanted] >= 0).any():
                    continue
                value = float(self.values(patches, wanted, each=True).sum())
                if value > best:
                    best, slots = value, wanted
        if slots is not None:
            self.patch[slots] = patches

    def values(self, patches: Indices, slots: Indices, *, each: bool = False) -> Floats:
        """(p, s): what each patch adds in each slot, by neighbours, picture and place; each: (p,) one by one."""
        pick = (patches, slots % self._cells) if each else np.ix_(patches, slots % self._cells)
        total: Floats = self.puzzle.places[pick].copy()
        if self.puzzle.kept:
            wrong = (patches % self._cells)[:, None] != (slots % self._cells)[None, :]
            total[np.diagonal(wrong) if each else wrong] = _NEVER
        for beside, odds, before in self._around:
            neighbour = np.where(beside[slots] >= 0, self.patch[beside[slots]], -1)
            there = neighbour >= 0
            if not there.any():
                continue
            at = np.flatnonzero(there)
            if each:
                pair = (neighbour[at], patches[at]) if before else (patches[at], neighbour[at])
                total[at] += odds[pair]
            elif before:
                total[:, at] += odds[np.ix_(neighbour[at], patches)].T
            else:
                total[:, at] += odds[np.ix_(patches, neighbour[at])]
        for picture in np.unique(slots // self._cells):
            here = self.patch[picture * self._cells : (picture + 1) * self._cells]
            here = here[here >= 0]
            if len(here):
                at = np.flatnonzero(slots // self._cells == picture)
                kin = self.puzzle.source[np.ix_(patches, here)].mean(axis=1)
                total[at if each else (slice(None), at)] += kin[at] if each else kin[:, None]
        return total

    def fill(self) -> None:
        """Give patches that lie nowhere to the free slots, those beside laid ones being decided best."""
        free = np.flatnonzero(self.patch < 0)
        left = np.setdiff1d(np.arange(len(self.patch)), self.patch)
        if len(free):
            patch, slot = linear_sum_assignment(self.values(left, free), maximize=True)
            self.patch[free[slot]] = left[patch]

    def improve(self, rng: Randomness) -> bool:
        """Take up patches of which no two touch, and lay them down in the best way; whether anything changed."""
        colour = rng.child("colour").permutation(2 * self._pictures)[: self._pictures] % 2
        slots = np.flatnonzero(self._parity == np.repeat(colour, self._cells))
        slots = slots[rng.child("slots").permutation(len(slots))[:_SLOTS]]
        taken = self.patch[slots]
        self.patch[slots] = -1
        values = self.values(taken, slots)
        patch, slot = linear_sum_assignment(values, maximize=True)
        self.patch[slots] = taken
        if values[patch, slot].sum() <= float(np.diagonal(values).sum()) + 1e-3:
            return False
        self.patch[slots[slot]] = taken[patch]
        return True
