"""Large releases: some pictures, and those that hold the rest of their sources, found without holding all at once."""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray

from veilkit.attacks.jigsaw.grid import Grid
from veilkit.attacks.jigsaw.seams import Indices, Seams
from veilkit.attacks.pictures import Pictures
from veilkit.rng import Randomness

_SEEDS = 48  # pictures whose sources are looked for
_SHARE = 0.25  # of the votes of a picture's best partner make a partner
_AT_ONCE = 4_000_000  # pairs of patches whose costs are held at a time


def with_partners(pictures: Pictures, grid: Grid, most: int, rng: Randomness) -> tuple[Indices, Indices]:
    """Positions of at most `most` pictures of one size, and of those among them whose whole groups are there.

    All of them where they are few enough. Else some at random, each with the pictures that hold the best neighbours
    of its patches.
    """
    if len(pictures) <= most:
        return np.arange(len(pictures)), np.arange(len(pictures))
    seeds = np.sort(rng.permutation(len(pictures))[: min(_SEEDS, most)])
    votes = _votes(pictures, seeds, grid)
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


def _votes(pictures: Pictures, seeds: Indices, grid: Grid) -> NDArray[np.int64]:
    """(S, N): how many best neighbours of each seed's patches, on four sides, are in each picture."""
    asked = grid.cut(torch.stack([pictures.load(int(seed)) for seed in seeds]))
    count = len(asked)
    cells = count // len(seeds)
    lowest = np.full((4, count), np.inf, dtype=np.float32)
    holder = np.zeros((4, count), dtype=np.int64)
    every = np.arange(count)
    # A seed's patches are among all others once more: nothing may follow its own copy.
    again = {int(seed): place * cells + np.arange(cells) for place, seed in enumerate(seeds)}
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
                    if picture in again:
                        costs[again[picture], (picture - start) * cells + np.arange(cells)] = np.inf
                best = costs.argmin(axis=1)
                values = costs[every, best]
                side = 2 * direction + back
                better = values < lowest[side]
                lowest[side, better] = values[better]
                holder[side, better] = start + best[better] // cells
    votes = np.zeros((len(seeds), len(pictures)), dtype=np.int64)
    np.add.at(votes, (np.tile(every // cells, 4), holder.ravel()), 1)
    return votes
