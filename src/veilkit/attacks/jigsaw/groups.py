"""Which pictures exchanged patches with each other, and whether patches kept their places.

Of a large release only some pictures are taken, with those that hold the rest of their sources, which are found
without holding all pictures at once.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.cluster.hierarchy import fcluster, linkage
from scipy.spatial.distance import squareform

from veilkit.attacks.jigsaw.grid import Grid, Indices, Seams
from veilkit.attacks.pictures import Pictures
from veilkit.rng import Randomness

_SHARE = 0.25  # of the votes that a picture gives its best partner make a partner, or on average a group
_EXPLAINED = 0.6  # of the links must lie within groups, or the pictures were mixed in larger ones than are seen
_SEEDS = 48  # pictures whose sources are looked for in a large release
_AT_ONCE = 4_000_000  # pairs of patches whose costs are held at a time
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


def with_partners(pictures: Pictures, grid: Grid, most: int, rng: Randomness) -> tuple[Indices, Indices]:
    """Positions of at most `most` pictures of one size, and of those among them whose whole groups are there.

    All of them where they are few enough. Else some at random, each with the pictures that hold the best neighbours
    of its patches.
    """
    if len(pictures) <= most:
        return np.arange(len(pictures)), np.arange(len(pictures))
    seeds = np.sort(rng.permutation(len(pictures))[: min(_SEEDS, most)])
    votes = _seed_votes(pictures, seeds, grid)
    partners = [np.flatnonzero(row >= _SHARE * row.max()) for row in votes]
    kept, chosen = [], set[int]()
    for seed, found in zip(seeds.tolist(), partners, strict=True):
        wanted = chosen | {seed, *found.tolist()}
        if len(wanted) <= most:
            kept.append(seed)
            chosen = wanted
    if not kept:  # every picture has partners everywhere: as many as can be
        chosen = set(np.argsort(-votes.sum(axis=0), kind="stable")[:most].tolist())
        return np.array(sorted(chosen)), np.array(sorted(chosen))
    return np.array(sorted(chosen)), np.array(kept)


def _seed_votes(pictures: Pictures, seeds: Indices, grid: Grid) -> NDArray[np.int64]:
    """(S, N): how many best neighbours of each seed's patches, on four sides, are in each picture."""
    asked = grid.cut(torch.stack([pictures.load(int(seed)) for seed in seeds]))
    count = len(asked)
    cells = count // len(seeds)
    lowest = np.full((4, count), np.inf, dtype=np.float32)
    holder = np.zeros((4, count), dtype=np.int64)
    every = np.arange(count)
    # A seed's patches are among all others once more: nothing may follow its own copy.
    own = {int(seed): place * cells + np.arange(cells) for place, seed in enumerate(seeds)}
    step = max(1, _AT_ONCE // (count * cells))
    for start in range(0, len(pictures), step):
        part = range(start, min(start + step, len(pictures)))
        patches = grid.cut(torch.stack([pictures.load(index) for index in part]))
        other = count + np.arange(len(patches))
        both = np.concatenate([asked, patches])
        for direction, seams in enumerate((Seams.right_of(both), Seams.below(both))):
            for back in (0, 1):
                costs = seams.costs(other, every).T if back else seams.costs(every, other)
                for picture in part:
                    if picture in own:
                        costs[own[picture], (picture - start) * cells + np.arange(cells)] = np.inf
                best = costs.argmin(axis=1)
                values = costs[every, best]
                side = 2 * direction + back
                better = values < lowest[side]
                lowest[side, better] = values[better]
                holder[side, better] = start + best[better] // cells
    votes = np.zeros((len(seeds), len(pictures)), dtype=np.int64)
    np.add.at(votes, (np.tile(every // cells, 4), holder.ravel()), 1)
    return votes
