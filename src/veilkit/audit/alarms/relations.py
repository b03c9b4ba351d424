"""Do two descriptions of the same items belong together? Exact or permutation tests, with the size of the effect.

Alarms ask hundreds of such questions, so each takes chances of one in a million, and an effect that no accident has.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

Rows = NDArray[np.float64]
_NEAR_DUPLICATE = 0.3  # of the usual distance


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
    return float(sum(math.comb(tries, each) for each in range(wins, tries + 1)) / 2**tries)


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


def same_structure(
    one: Rows, other: Rows, pairs: NDArray[np.bool_], generator: np.random.Generator, draws: int = 400
) -> tuple[float, float]:
    """Whether items that are alike by one (N, N) distance are so by the other: the rank correlation of the distances
    of some (N, N) pairs, and how many standard deviations it lies above those under permuted items (Mantel's test).
    """
    upper = np.triu(pairs, 1)
    if upper.sum() < len(one):
        return 0.0, 0.0
    first, second = ranks(one[upper]), np.zeros(other.shape)
    everything = np.triu_indices(len(one), 1)
    second[everything] = ranks(other[everything])
    second += second.T

    def correlation(order: NDArray[np.int64]) -> float:
        values = second[np.ix_(order, order)][upper]
        apart, values = first - first.mean(), values - values.mean()
        return float(apart @ values) / max(math.sqrt(float(apart @ apart) * float(values @ values)), 1e-9)

    drawn = [correlation(generator.permutation(len(one))) for _ in range(draws)]
    found = correlation(np.arange(len(one)))
    return found, (found - float(np.mean(drawn))) / max(float(np.std(drawn)), 1e-9)


def unlike(apart: Rows, strangers: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """(N, N) pairs of strangers whose distance is not far below the usual: near-duplicates share all there is."""
    usual = float(np.median(apart[np.triu_indices(len(apart), 1)]))
    return np.asarray(strangers & (apart > _NEAR_DUPLICATE * usual))


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
        wins = []
        for at in mine:
            strangers = apart[at, ~same[at]]
            nearer = (apart[at, mine, None] < strangers) + 0.5 * (apart[at, mine, None] == strangers)
            wins.append(float(nearer[mine != at].mean()))
        shares.append(float(np.mean(wins)))
    return float(np.mean(shares)) if shares else math.nan


def surely_by_person(
    apart: Rows, people: NDArray[np.int64], generator: np.random.Generator, draws: int = 200
) -> float:
    """How many standard deviations `person_choices` lies above those of people dealt anew."""
    drawn = [person_choices(apart, generator.permutation(people)) for _ in range(draws)]
    return (person_choices(apart, people) - float(np.mean(drawn))) / max(float(np.std(drawn)), 1e-9)
