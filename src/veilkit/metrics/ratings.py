"""Answers of raters: how far they agree beyond chance (kappas), and how well they tell "same" from "different" (d').

A kappa of 1 is full agreement, 0 what chance gives, below 0 less than that. It is None where it is not defined: where
chance alone would make all raters agree, because all of them always give the same answer.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import ndtri

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


class Sensitivity(NamedTuple):
    """d_prime: 0 where nothing is told apart. criterion: above 0 where "same" is said too seldom, below too often."""

    d_prime: NDArray[np.float64]
    criterion: NDArray[np.float64]


def sensitivity(hits: ArrayLike, same: ArrayLike, false_alarms: ArrayLike, different: ArrayLike) -> Sensitivity:
    """d' = z(H) - z(F) and c = -(z(H) + z(F)) / 2, elementwise.

    hits: answers "same" of those on `same` pairs; false_alarms: of those on `different` pairs. Counts may be
    weighted. Rates are (count + 0.5) / (number + 1), the log-linear rule (Hautus 1995), so that 0 % and 100 %
    stay finite.

    >>> found = sensitivity(10, 20, 10, 20)
    >>> float(found.d_prime), abs(float(found.criterion))
    (0.0, 0.0)
    """
    found, signals, alarms, noises = (
        np.asarray(each, dtype=np.float64) for each in (hits, same, false_alarms, different)
    )
    _check_part(found, signals, "hits", "same")
    _check_part(alarms, noises, "false_alarms", "different")
    hit, alarm = ndtri((found + 0.5) / (signals + 1.0)), ndtri((alarms + 0.5) / (noises + 1.0))
    return Sensitivity(np.asarray(hit - alarm), np.asarray(-(hit + alarm) / 2.0))


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


def _check_part(part: NDArray[Any], whole: NDArray[Any], part_name: str, whole_name: str) -> None:
    if bool((part < 0).any()) or bool((part > whole).any()):
        raise DataError(f"{part_name} must lie between 0 and {whole_name}, but some do not")
