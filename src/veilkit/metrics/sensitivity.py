"""Signal detection: how well "same" is told from "different", apart from how readily "same" is said."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import ndtri

from veilkit.errors import DataError


class Sensitivity(NamedTuple):
    """d_prime: 0 where nothing is told apart. criterion: above 0 where "same" is said too seldom, below too often."""

    d_prime: NDArray[np.float64]
    criterion: NDArray[np.float64]


def sensitivity(hits: ArrayLike, same: ArrayLike, false_alarms: ArrayLike, different: ArrayLike) -> Sensitivity:
    """d' = z(H) - z(F) and c = -(z(H) + z(F)) / 2, elementwise.

    hits: answers "same" of those on `same` pairs; false_alarms: of those on `different` pairs. Counts may be
    weighted. Rates are (count + 0.5) / (number + 1), the log-linear rule (Hautus 1995), so that 0 % and 100 %
    stay finite.

    >>> told = sensitivity(10, 20, 10, 20)
    >>> float(told.d_prime), abs(float(told.criterion))
    (0.0, 0.0)
    """
    found, signals, alarms, noises = (
        np.asarray(each, dtype=np.float64) for each in (hits, same, false_alarms, different)
    )
    _check(found, signals, "hits", "same")
    _check(alarms, noises, "false_alarms", "different")
    hit, alarm = ndtri((found + 0.5) / (signals + 1.0)), ndtri((alarms + 0.5) / (noises + 1.0))
    return Sensitivity(np.asarray(hit - alarm), np.asarray(-(hit + alarm) / 2.0))


def _check(part: NDArray[Any], whole: NDArray[Any], part_name: str, whole_name: str) -> None:
    if bool((part < 0).any()) or bool((part > whole).any()):
        raise DataError(f"{part_name} must lie between 0 and {whole_name}, but some do not")
