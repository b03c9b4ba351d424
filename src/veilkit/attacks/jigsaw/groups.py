"""Which pictures exchanged patches with each other, and whether patches kept their places."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.cluster.hierarchy import fcluster, linkage
from scipy.spatial.distance import squareform

from veilkit.attacks.jigsaw.seams import Indices, Seams

_SHARE = 0.25  # of the votes that a picture gives its best partner; pictures with fewer on average stay apart
_EXPLAINED = 0.6  # of the links must lie within groups, or the pictures were mixed in larger ones than are seen
_KEPT = 0.5  # of the links lead to the next place of the grid; by chance it is one in rows x columns


@dataclass(frozen=True, slots=True)
class Links:
    """Pairs of patches that each choose the other: `second` (L,) is to the right of, or below, `first` (L,)."""

    first: Indices
    second: Indices
    down: NDArray[np.bool_]

    @classmethod
    def of(cls, right: Seams, below: Seams) -> Links:
        """Best buddies among all patches, in both directions."""
        every = np.arange(len(right))
        found = []
        for seams in (right, below):
            follows, precedes = seams.best(every, every)
            mutual = every[precedes[follows] == every]
            found.append((mutual, follows[mutual]))
        down = np.repeat([False, True], [len(found[0][0]), len(found[1][0])])
        return cls(np.concatenate([a for a, _ in found]), np.concatenate([b for _, b in found]), down)

    def votes(self, cells: int) -> NDArray[np.int64]:
        """(N, N) symmetric: links between patches of each two pictures, which have `cells` patches each."""
        count = int(max(self.first.max(initial=0), self.second.max(initial=0))) // cells + 1
        table = np.zeros((count, count), dtype=np.int64)
        np.add.at(table, (self.first // cells, self.second // cells), 1)
        return table + table.T

    def keep_places(self, shape: tuple[int, int]) -> bool:
        """Whether most links lead to the next place of a grid of (rows, columns): patches only changed pictures."""
        columns = shape[1]
        place, other = self.first % (shape[0] * columns), self.second % (shape[0] * columns)
        next_to = np.where(self.down, other == place + columns, (other == place + 1) & (other % columns > 0))
        return bool(len(next_to)) and float(next_to.mean()) > _KEPT


def groups_of_pictures(links: Links, pictures: int, cells: int, most: int) -> list[Indices]:
    """Positions of pictures in groups that share sources, of average linkage by votes; each picture is in one.

    Where most links lead out of the groups, all pictures together are one group, if `most` patches allow it.
    """
    if pictures == 1:
        return [np.zeros(1, dtype=np.int64)]
    votes = np.zeros((pictures, pictures), dtype=np.float64)
    seen = links.votes(cells)
    votes[: len(seen), : len(seen)] = seen
    threshold = max(0.5, _SHARE * float(np.median(votes.max(axis=1))))
    top = votes.max()
    distance = squareform(top - votes, checks=False)
    tree = linkage(distance, method="average")
    label = fcluster(tree, t=top - threshold, criterion="distance")
    inside = label[links.first // cells] == label[links.second // cells]
    if len(inside) and inside.mean() < _EXPLAINED and pictures * cells <= most:
        return [np.arange(pictures)]
    groups = [np.flatnonzero(label == each) for each in np.unique(label)]
    size = max(1, most // cells)
    return [group[start : start + size] for group in groups for start in range(0, len(group), size)]
