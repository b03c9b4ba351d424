"""Two sets of pictures made equal, in people and in pictures of each, so that neither is nearer by its size."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from veilkit.rng import Randomness

Indices = NDArray[np.int64]


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
