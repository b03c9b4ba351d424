"""How well scores tell members from others: AUC, TPR at 1 % FPR and balanced accuracy, with people drawn again."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from veilkit.attacks.intervals import CONFIDENCE, DRAWS
from veilkit.errors import DataError
from veilkit.metrics import auc, clopper_pearson, roc, tpr_at_fpr
from veilkit.rng import Randomness
from veilkit.types import Role, Score

FPR = 0.01
AUC, TPR, ACCURACY = "AUC", "TPR at 1% FPR", "balanced accuracy"
_FOLDS = 5
_AT_ONCE = 100  # draws, which bounds the memory

Values = NDArray[np.float64]
Mask = NDArray[np.bool_]


@dataclass(frozen=True, slots=True, eq=False)
class Judged:
    """Candidates of an attack and the truth. score, member, people: (N,); people are codes."""

    score: Values
    member: Mask
    people: NDArray[np.int64]

    def __post_init__(self) -> None:
        if not np.isfinite(self.score).all():
            raise DataError("membership scores must be finite, but hold NaN or infinity; check the statistic")

    def by_person(self) -> Judged:
        """One candidate for each person: the mean of their pictures' scores."""
        names, place = np.unique(self.people, return_inverse=True)
        mean = np.bincount(place, self.score) / np.bincount(place)
        return Judged(mean, np.bincount(place, self.member) > 0, names)

    @property
    def sides(self) -> int:
        """How many people there are among the members or among the others, whichever are fewer."""
        return min(len(np.unique(self.people[self.member == side])) for side in (True, False))

    @property
    def chance(self) -> dict[str, float]:
        """What scores without any meaning reach: for TPR, the place of one more among the non-members."""
        others = int((~self.member).sum())
        return {AUC: 0.5, TPR: (int(FPR * others + 1e-9) + 1) / (others + 1), ACCURACY: 0.5}


def membership_scores(judged: Judged, rng: Randomness, note: str = "") -> tuple[Score, ...]:
    """AUC (the headline), TPR at 1 % FPR and balanced accuracy. Needs two people on each side.

    The accuracy's threshold is chosen on other people than it is judged on (five folds): the best threshold of the
    judged people themselves would beat chance on anything. Its interval takes the thresholds as given.
    """
    right = _right_by_fold(judged, rng.child("folds"))
    member = judged.member
    values = {
        AUC: auc(judged.score[member], judged.score[~member]),
        TPR: tpr_at_fpr(judged.score[member], judged.score[~member], FPR),
        ACCURACY: float(right[member].mean() + right[~member].mean()) / 2,
    }
    drawn = _drawn(judged, right, rng.child("bootstrap").numpy())
    ends = np.quantile(drawn, [(1 - CONFIDENCE) / 2, (1 + CONFIDENCE) / 2], axis=1)
    notes = [f"chance {chance:.2%}" for chance in judged.chance.values()]
    if (others := int((~member).sum())) * FPR < 10:
        notes[1] += f"; rests on {int(FPR * others + 1e-9)} of {others} non-members"
    scores = []
    for place, (metric, value) in enumerate(values.items()):
        low, high = min(float(ends[0, place]), value), max(float(ends[1, place]), value)
        if value in (0.0, 1.0):  # all draws are alike; the exact interval of so many people is not empty
            exact = clopper_pearson(round(value * judged.sides), judged.sides, confidence=CONFIDENCE)
            low, high = exact.low, exact.high
        text = "; ".join(filter(None, [notes[place], note]))
        scores.append(Score(metric, value, Role.PRIVACY, False, low, high, text))
    return tuple(scores)


def _groups(judged: Judged) -> tuple[NDArray[np.int64], list[NDArray[np.int64]]]:
    """(N,) each candidate's person from 0, and these numbers in strata: with members only, with both, with others."""
    _, person = np.unique(judged.people, return_inverse=True)
    inside, outside = (np.bincount(person, side) > 0 for side in (judged.member, ~judged.member))
    strata = (np.flatnonzero(part) for part in (inside & ~outside, inside & outside, outside & ~inside))
    return person, [stratum for stratum in strata if len(stratum)]


def _right_by_fold(judged: Judged, rng: Randomness) -> Values:
    """(N,) 1 where a threshold, chosen for balanced accuracy on the people of the other folds, decides rightly."""
    person, groups = _groups(judged)
    fold = np.empty(int(person.max()) + 1, dtype=np.int64)
    folds = min(_FOLDS, judged.sides)
    # Numbered on from stratum to stratum, so that members, and others, of any two people are in different folds.
    mixed = np.concatenate([group[rng.child(i).permutation(len(group))] for i, group in enumerate(groups)])
    fold[mixed] = np.arange(len(mixed)) % folds
    right = np.empty(len(person))
    for one in range(folds):
        test = fold[person] == one
        curve = roc(judged.score[~test & judged.member], judged.score[~test & ~judged.member])
        best = int(np.argmax(curve.tpr - curve.fpr))
        after = curve.thresholds[min(best + 1, len(curve.thresholds) - 1)]
        here = curve.thresholds[best]
        threshold = (here + after) / 2 if np.isfinite(here) else here  # half-way to the first that is refused
        right[test] = (judged.score[test] >= threshold) == judged.member[test]
    return right


def _drawn(judged: Judged, right: Values, generator: np.random.Generator) -> Values:
    """(3, draws): the three scores in bootstrap draws of people, each stratum drawn apart: both sides are in each."""
    person, groups = _groups(judged)
    order = np.argsort(judged.score, kind="stable")
    starts = np.flatnonzero(np.r_[True, np.diff(judged.score[order]) > 0])
    member, right = judged.member[order].astype(np.float64), right[order]
    parts = []
    for _ in range(0, DRAWS, _AT_ONCE):
        times = np.zeros((_AT_ONCE, int(person.max()) + 1))
        for group in groups:
            times[:, group] = generator.multinomial(len(group), np.full(len(group), 1 / len(group)), size=_AT_ONCE)
        weight = times[:, person[order]]
        inside = np.add.reduceat(weight * member, starts, axis=1)
        outside = np.add.reduceat(weight * (1 - member), starts, axis=1)
        all_in, all_out = inside.sum(axis=1), outside.sum(axis=1)
        area = (inside * (np.cumsum(outside, axis=1) - outside / 2)).sum(axis=1) / (all_in * all_out)
        accepted_in = np.cumsum(inside[:, ::-1], axis=1)
        accepted_out = np.cumsum(outside[:, ::-1], axis=1)
        allowed = accepted_out <= np.floor(FPR * all_out + 1e-9)[:, None]
        found = np.where(allowed, accepted_in, 0).max(axis=1) / all_in
        accuracy = ((weight * member) @ right / all_in + (weight * (1 - member)) @ right / all_out) / 2
        parts.append(np.stack([area, found, accuracy]))
    return np.concatenate(parts, axis=1)
