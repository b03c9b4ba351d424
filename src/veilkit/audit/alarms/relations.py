"""Do two descriptions of the same items belong together? Exact or permutation tests, with the size of the effect.

Alarms ask hundreds of such questions, so each takes chances of one in a million, and an effect that no accident has.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

Rows = NDArray[np.float64]


def centred(rows: Rows) -> Rows:
    """(..., N, D): what is common to all N rows taken away, and each of length 1; rows like the mean become zero."""
    apart = rows - rows.mean(axis=-2, keepdims=True)
    norms = np.linalg.norm(apart, axis=-1, keepdims=True)
    return np.asarray(np.where(norms > 1e-6, apart / np.maximum(norms, 1e-6), 0.0))


def own_likeness(first: Rows, second: Rows, strangers: NDArray[np.bool_]) -> tuple[Rows, Rows]:
    """Of rows (..., N, D) that are `centred`: (..., N) likeness to the own one, and the share of strangers' below it.

    strangers: (N, N) who is a stranger to whom; ties count by half.
    """
    alike = first @ np.swapaxes(second, -1, -2)
    own = np.einsum("...nn->...n", alike)
    less = np.where(np.isclose(alike, own[..., None]), 0.5, (alike < own[..., None]).astype(np.float64))
    return own, (less * strangers).sum(axis=-1) / np.maximum(1, strangers.sum(axis=-1))


def sign_test(wins: int, tries: int) -> float:
    """Chance of so many heads or more in so many tosses.

    >>> sign_test(10, 10) == 2**-10
    True
    """
    return math.fsum(math.comb(tries, each) for each in range(wins, tries + 1)) / 2**tries


def distances(rows: Rows) -> Rows:
    """(N, N) mean absolute differences of the rows of (N, D)."""
    return np.stack([np.abs(rows - row).mean(axis=1) for row in rows])


def ranks(values: Rows) -> Rows:
    """Of (N,) values, from 0, ties in the middle."""
    _, place, counts = np.unique(values, return_inverse=True, return_counts=True)
    return np.asarray((np.cumsum(counts) - (counts + 1) / 2)[place], dtype=np.float64)


def rank_correlation(one: Rows, other: Rows) -> float:
    """Spearman's, of (N,) values; 0 where one of them is constant.

    >>> rank_correlation(np.arange(4.0), np.arange(4.0) ** 3)
    1.0
    """
    first, second = ranks(one) - (len(one) - 1) / 2, ranks(other) - (len(other) - 1) / 2
    size = math.sqrt(float(first @ first) * float(second @ second))
    return float(first @ second) / size if size > 0 else 0.0


def same_structure(one: Rows, other: Rows, generator: np.random.Generator, draws: int = 400) -> tuple[float, float]:
    """Whether items that are alike by one (N, N) distance are so by the other: the rank correlation of the distances
    of pairs, and how many standard deviations it lies above those under permuted items (Mantel's test).
    """
    upper = np.triu_indices(len(one), 1)
    first, second = ranks(one[upper]), ranks(other[upper])
    first, second = first - first.mean(), second - second.mean()
    size = math.sqrt(float(first @ first) * float(second @ second))
    if size == 0:
        return 0.0, 0.0
    square = np.zeros(other.shape)
    square[upper] = second
    square += square.T
    drawn = []
    for _ in range(draws):
        order = generator.permutation(len(one))
        drawn.append(float(first @ square[np.ix_(order, order)][upper]) / size)
    found, spread = float(first @ second) / size, float(np.std(drawn))
    return found, (found - float(np.mean(drawn))) / max(spread, 1e-9)


def person_choices(apart: Rows, people: NDArray[np.int64]) -> float:
    """How often, of (N, N) distances, another picture of the person is nearer than a stranger's; ties by half.

    Each person counts alike. One half is chance; NaN where nobody has two pictures, or all are one person.
    """
    same = people[:, None] == people[None, :]
    shares = []
    for code in np.unique(people):
        mine = np.flatnonzero(people == code)
        if len(mine) < 2 or len(mine) == len(people):
            continue
        wins = [
            float(((apart[at, other] < apart[at, ~same[at]]) + 0.5 * (apart[at, other] == apart[at, ~same[at]])).mean())
            for at in mine for other in mine if other != at
        ]  # fmt: skip
        shares.append(float(np.mean(wins)))
    return float(np.mean(shares)) if shares else math.nan


def surely_by_person(apart: Rows, people: NDArray[np.int64], generator: np.random.Generator, draws: int = 200) -> float:
    """How many standard deviations `person_choices` lies above those of people dealt anew."""
    drawn = [person_choices(apart, generator.permutation(people)) for _ in range(draws)]
    return (person_choices(apart, people) - float(np.mean(drawn))) / max(float(np.std(drawn)), 1e-9)
