"""Verification over all pairs of two sets of pictures of the same people, with intervals over people.

Picture i of the first set (protected, say) belongs to picture i of the second (raw). A genuine pair is two different
pictures of one person, an impostor pair two pictures of different people: every pair counts, save a picture with its
own counterpart.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from veilkit.errors import ConfigError, DataError
from veilkit.metrics.inputs import Values, whole_numbers
from veilkit.metrics.uncertainty import Interval, clopper_pearson, percentile_interval

_FEWEST_DRAWS = 1000
_ROOM = 4  # times the impostors that a rate lets through are kept for the draws, whose weights differ
_ROUNDING = 1e-9


@dataclass(frozen=True, slots=True, eq=False)
class PairRates:
    """TPR at each of R false positive rates. draws: (R, D), of the same people in each column for one generator.

    thresholds: (R,) the score that a pair must exceed. people: how many of them have a genuine pair.
    """

    rates: tuple[float, ...]
    values: NDArray[np.float64]
    thresholds: NDArray[np.float64]
    draws: NDArray[np.float64]
    people: int
    genuine: int
    impostors: int

    def interval(self, place: int, confidence: float = 0.95) -> Interval:
        """Of one rate; where no pair or every pair is accepted, the exact one of so many people."""
        value = float(self.values[place])
        if value in (0.0, 1.0):
            return clopper_pearson(round(value * self.people), self.people, confidence=confidence)
        return percentile_interval(value, self.draws[place], confidence)


@dataclass(frozen=True, slots=True, eq=False)
class CrossPairs:
    """Scores of all pairs. genuine, impostor: (G,), (I,) similarities; genuine_people: (G,) places of people.

    first, second: (I,) places of the two people of an impostor pair. pictures: (P,) of each person.
    """

    genuine: NDArray[np.float64]
    genuine_people: NDArray[np.int64]
    impostor: NDArray[np.float64]
    first: NDArray[np.int32]
    second: NDArray[np.int32]
    pictures: NDArray[np.int64]

    @classmethod
    def of(cls, similar: NDArray[np.floating], people: Values) -> CrossPairs:
        """Of similarities (N, N), first set by second set, of pictures of people (N,)."""
        if similar.ndim != 2 or similar.shape[0] != similar.shape[1] or not np.isfinite(similar).all():
            raise DataError(f"similarities must be finite, (pictures, the same pictures), but got {similar.shape}")
        _, person, counts = np.unique(
            whole_numbers(people, "people", len(similar)), return_inverse=True, return_counts=True
        )
        alike = person[:, None] == person[None]
        row, column = np.nonzero(~alike)
        impostor = similar[row, column].astype(np.float64)
        np.fill_diagonal(alike, False)
        mine, other = np.nonzero(alike)
        if not len(mine) or not len(row):
            raise DataError("expected two people, and two pictures of somebody, but there is no such pair")
        return cls(
            similar[mine, other].astype(np.float64), person[mine].astype(np.int64), impostor,
            person[row].astype(np.int32), person[column].astype(np.int32), counts.astype(np.int64),
        )  # fmt: skip

    def tpr(
        self,
        rates: Sequence[float],
        *,
        generator: np.random.Generator,
        draws: int = 1000,
        calibration: CrossPairs | None = None,
    ) -> PairRates:
        """The highest TPR of a threshold that accepts at most each share of the impostor pairs; people are drawn.

        calibration: whose impostor pairs set the threshold instead, as a recogniser's owner would have set it before
        anything was protected; of the same people. A draw counts an impostor pair as often as both of its people.
        """
        if draws < _FEWEST_DRAWS or not rates or not all(0 < rate < 1 for rate in rates):
            raise ConfigError(f"expected rates in (0, 1) and at least {_FEWEST_DRAWS} draws, got {rates} and {draws}")
        others = self if calibration is None else calibration
        if not np.array_equal(others.pictures, self.pictures):
            raise DataError("a threshold must be set on pictures of the same people")
        count = len(self.pictures)
        times = generator.multinomial(count, np.full(count, 1.0 / count), size=draws).astype(np.float64)
        top = _Top.of(others, min(1.0, _ROOM * max(rates)))
        whole = top.thresholds(np.ones(count), rates)
        drawn = np.full((len(rates), draws), np.nan)
        for number, often in enumerate(times):
            weights = often[self.genuine_people]
            if weights.sum() and len(limits := top.thresholds(often, rates)):
                drawn[:, number] = [(weights * (self.genuine > limit)).sum() / weights.sum() for limit in limits]
        kept = drawn[:, np.isfinite(drawn).all(axis=0)]
        if not kept.size:
            raise DataError("no draw of people holds a genuine and an impostor pair: there are too few of them")
        return PairRates(
            tuple(rates), np.array([(self.genuine > limit).mean() for limit in whole]), whole, kept,
            len(np.unique(self.genuine_people)), len(self.genuine), len(self.impostor),
        )  # fmt: skip


@dataclass(frozen=True, slots=True, eq=False)
class _Top:
    """The impostor pairs of the highest scores, falling; the others are never asked for."""

    scores: NDArray[np.float64]
    first: NDArray[np.int32]
    second: NDArray[np.int32]
    pairs: CrossPairs

    @classmethod
    def of(cls, pairs: CrossPairs, share: float) -> _Top:
        kept = min(len(pairs.impostor), int(share * len(pairs.impostor)) + 64)
        order = np.argsort(-pairs.impostor, kind="stable")[:kept]
        return cls(pairs.impostor[order], pairs.first[order], pairs.second[order], pairs)

    def thresholds(self, often: NDArray[np.float64], rates: Sequence[float]) -> NDArray[np.float64]:
        """(R,) the first impostor's score that must be refused at each rate; none where no pair is drawn."""
        drawn = often * self.pairs.pictures
        total = drawn.sum() ** 2 - (drawn**2).sum()
        if total <= 0:
            return np.empty(0)
        weight = np.cumsum(often[self.first] * often[self.second])
        allowed = np.array(rates) * total
        if weight[-1] <= allowed.max() + _ROUNDING and len(self.scores) < len(self.pairs.impostor):
            return _Top.of(self.pairs, 1.0).thresholds(often, rates)
        places = np.searchsorted(weight, allowed + _ROUNDING, side="right")
        return np.where(places < len(weight), self.scores[np.minimum(places, len(weight) - 1)], -np.inf)
