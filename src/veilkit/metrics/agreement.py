"""How far raters agree beyond chance: Cohen's, Fleiss' and the free-marginal kappa.

1 is full agreement, 0 what chance gives, below 0 less than that. A kappa is None where it is not defined: where
chance alone would make all raters agree, because all of them always give the same answer.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from veilkit.errors import DataError
from veilkit.metrics.inputs import Values, whole_numbers


def category_counts(ratings: NDArray[np.int64], categories: int) -> NDArray[np.int64]:
    """How many raters chose each category for each item, (items, categories), from ratings (items, raters).

    >>> category_counts(np.array([[0, 0, 1], [2, 2, 2]]), 3).tolist()
    [[2, 1, 0], [0, 0, 3]]
    """
    if ratings.ndim != 2 or 0 in ratings.shape:
        raise DataError(f"ratings must have shape (items, raters), none of them 0, but got {ratings.shape}")
    if ratings.min() < 0 or ratings.max() >= categories:
        raise DataError(
            f"ratings must be categories from 0 to {categories - 1}, but span {ratings.min()} to {ratings.max()}"
        )
    return np.stack([(ratings == category).sum(axis=1) for category in range(categories)], axis=1)


def cohen_kappa(first: Values, second: Values) -> float | None:
    """Agreement of two raters on N items (Cohen 1960): chance follows from how often each gives each answer.

    >>> cohen_kappa([1, 1, 0, 0], [1, 0, 0, 0])
    0.5
    """
    one = whole_numbers(first, "first", len(first))
    other = whole_numbers(second, "second", len(one))
    if not len(one):
        raise DataError("agreement needs at least one item, but got none")
    categories = np.union1d(one, other)
    chance = sum(float((one == each).mean() * (other == each).mean()) for each in categories)
    return _beyond(float((one == other).mean()), chance)


def fleiss_kappa(counts: NDArray[np.int64]) -> float | None:
    """Agreement of two or more raters (Fleiss 1971) from counts (items, categories), as many raters for each item.

    >>> fleiss_kappa(np.array([[3, 0], [0, 3]]))
    1.0
    """
    raters = _raters(counts)
    shares = counts.sum(axis=0) / (raters * len(counts))
    return _beyond(_observed(counts, raters), float((shares**2).sum()))


def free_marginal_kappa(counts: NDArray[np.int64]) -> float | None:
    """Agreement of two or more raters where each item has answers of its own (Randolph 2005).

    counts: (items, categories), as many raters for each item. Categories of one item have nothing to do with those of
    the next, so how often each is given says nothing, and chance is 1 / categories.

    >>> free_marginal_kappa(np.array([[2, 0, 0, 0], [0, 1, 1, 0]]))
    0.3333333333333333
    """
    raters = _raters(counts)
    return _beyond(_observed(counts, raters), 1.0 / counts.shape[1])


def _observed(counts: NDArray[np.int64], raters: int) -> float:
    """The share of pairs of raters that agree, over all items."""
    return float((counts * (counts - 1)).sum() / (len(counts) * raters * (raters - 1)))


def _raters(counts: NDArray[np.int64]) -> int:
    if counts.ndim != 2 or 0 in counts.shape or counts.min() < 0:
        raise DataError(f"counts must have shape (items, categories) and none below 0, but got {counts.shape}")
    totals = np.unique(counts.sum(axis=1))
    if len(totals) != 1 or totals[0] < 2:
        raise DataError(
            f"agreement needs the same 2 or more raters for each item, but they have {totals.min()} to {totals.max()}"
        )
    return int(totals[0])


def _beyond(observed: float, chance: float) -> float | None:
    return None if chance > 1.0 - 1e-12 else (observed - chance) / (1.0 - chance)
