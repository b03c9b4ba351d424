"""The people nearest to each synthetic picture, in two matched sets of which one was trained on.

The sets are made equal, in people and in pictures of each, so that neither is nearer by its size.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from veilkit.attacks.intervals import DRAWS
from veilkit.attacks.synthetic_release.nearest import Vectors, distances
from veilkit.rng import Randomness

Indices = NDArray[np.int64]
Values = NDArray[np.float64]
_CHUNK = 128
_AT_ONCE = 50  # draws, which bounds the memory


@dataclass(frozen=True, slots=True, eq=False)
class Matched:
    """Positions (N,) in two sets, and (N,) the number of the pair of people to which both belong, from 0."""

    first: Indices
    second: Indices
    pair: Indices


def matched_people(first: Indices, second: Indices, rng: Randomness) -> Matched:
    """Two sets, given by their people's codes, cut to equally many people with equally many pictures.

    Of the set with more people some are drawn. People are then paired by how many pictures they have, and of each
    pair's pictures as many are drawn as the one with fewer has.
    """
    names = [np.unique(people, return_counts=True) for people in (first, second)]
    count = min(len(people) for people, _ in names)
    chosen = []
    for side, (people, pictures) in enumerate(names):
        drawn = rng.child("people", side).permutation(len(people))[:count]
        chosen.append(people[drawn[np.argsort(pictures[drawn], kind="stable")]])
    return _same_counts(first, second, chosen[0], chosen[1], rng)


def matched_pictures(first: Indices, second: Indices, rng: Randomness) -> Matched:
    """As `matched_people`, of people who are in both sets, each paired with themselves."""
    both = np.intersect1d(first, second)
    return _same_counts(first, second, both, both, rng)


def _same_counts(first: Indices, second: Indices, one: Indices, other: Indices, rng: Randomness) -> Matched:
    empty = np.empty(0, dtype=np.int64)
    taken: tuple[list[Indices], list[Indices], list[Indices]] = ([empty], [empty], [empty])
    for number, codes in enumerate(zip(one, other, strict=True)):
        own = [np.flatnonzero(people == code) for people, code in zip((first, second), codes, strict=True)]
        count = min(map(len, own))
        for side, places in enumerate(own):
            order = rng.child("pictures", side, number).permutation(len(places))
            taken[side].append(np.sort(places[order[:count]]))
        taken[2].append(np.full(count, number, dtype=np.int64))
    return Matched(*(np.concatenate(part) for part in taken))


@dataclass(frozen=True, slots=True, eq=False)
class Neighbours:
    """For S synthetic pictures, in the training set (0) and in the other (1), the nearest K people.

    near: (2, S, K) distances to the nearest picture of each, rising. pair: (2, S, K) the matched pair that the person
    belongs to.
    """

    near: Vectors
    pair: Indices

    @property
    def nearer(self) -> Values:
        """(S,) 1 where the training set is nearer, 0 where the other is; ties count half."""
        return _nearer(self.near[0, :, 0], self.near[1, :, 0])

    @property
    def ratio(self) -> float:
        """Mean distance to the training set divided by that to the other."""
        return distance_ratio(float(self.near[0, :, 0].mean()), float(self.near[1, :, 0].mean()))

    @property
    def outcomes(self) -> int:
        """How many independent outcomes there are: Kish's effective number of different nearest people.

        Often a few pictures are everybody's neighbours; which set those are in is chance, however many synthetic
        pictures say the same.
        """
        first = self.near[0, :, 0] <= self.near[1, :, 0]
        winner = np.stack([first, np.where(first, self.pair[0, :, 0], self.pair[1, :, 0])])
        _, counts = np.unique(winner, axis=1, return_counts=True)
        return max(1, int(counts.sum() ** 2 / (counts.astype(np.float64) ** 2).sum()))

    def swapped(self, rng: Randomness) -> tuple[Values, Values]:
        """Shares nearer and ratios, each (draws,), if in each pair chance decides who was trained on.

        That is what both are worth where nothing is memorised, whatever the pictures are like.
        """
        queries, count = self.near.shape[1:]
        near, pair = np.concatenate(self.near, axis=1), np.concatenate(self.pair, axis=1)
        trained = np.repeat([True, False], count)[None].repeat(queries, axis=0)
        order = np.argsort(near, axis=1, kind="stable")
        near, pair, trained = (np.take_along_axis(part, order, axis=1) for part in (near, pair, trained))
        generator, rows = rng.numpy(), np.arange(queries)
        shares, ratios = [], []
        for _ in range(0, DRAWS, _AT_ONCE):
            coins = generator.integers(0, 2, (_AT_ONCE, int(pair.max()) + 1)).astype(np.bool_)
            here = trained ^ coins[:, pair]
            # Where all K people of both sets fell to one side, the last of them stands for who is farther.
            own, other = (near[rows, np.where(s.any(axis=2), s.argmax(axis=2), -1)] for s in (here, ~here))
            shares.append(_nearer(own, other).mean(axis=1))
            ratios += [distance_ratio(float(a), float(b)) for a, b in zip(own.mean(1), other.mean(1), strict=True)]
        return np.concatenate(shares), np.array(ratios)


def nearest_people(query: Vectors, reference: Vectors, pair: Indices, count: int) -> tuple[Vectors, Indices, Indices]:
    """Of the `count` people nearest to each query, nearest first: distance, pair and picture's position, (Q, K).

    pair: (R,) of each reference picture, rising from 0 without gaps, as `Matched` gives it.
    """
    starts = np.flatnonzero(np.r_[True, np.diff(pair) > 0])
    count = min(count, len(starts))
    parts = []
    for start in range(0, len(query), _CHUNK):
        rows = distances(query[start : start + _CHUNK], reference)
        best = np.minimum.reduceat(rows, starts, axis=1)
        people = np.argsort(best, axis=1, kind="stable")[:, :count]
        own = np.where(pair[None, None] == people[:, :, None], rows[:, None], np.inf)
        parts.append((np.take_along_axis(best, people, axis=1), people, own.argmin(axis=2)))
    near, people, places = (np.concatenate(part) for part in zip(*parts, strict=True))
    return near, people, places


def distance_ratio(near: float, far: float) -> float:
    """near / far, 1 where both are equal, also where both are 0."""
    return 1.0 if near == far else near / max(far, 1e-12)


def _nearer(own: Vectors, other: Vectors) -> Values:
    return np.where(own == other, 0.5, own < other)
