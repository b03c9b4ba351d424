"""What protection changes, search by search: the same queries among protected pictures and among originals."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from veilkit.attacks.intervals import CONFIDENCE, DRAWS
from veilkit.audit.result import DIFFERENCE, By, Measurement
from veilkit.metrics import RetrievalResult, clopper_pearson, paired_difference
from veilkit.rng import Randomness
from veilkit.types import Role, Score


def paired_differences(
    by: By,
    protected: RetrievalResult,
    raw: RetrievalResult,
    people: NDArray[np.int64],
    *,
    role: Role,
    rng: Randomness,
    note: str = "",
) -> tuple[Measurement, ...]:
    """Rank-1 and mAP of the queries (Q,) among protected pictures minus those among originals, each in [-1, 1].

    Both searches ask the same queries, so what makes a query easy or hard cancels out: the interval is narrower than
    those of the two values let expect. people: (Q,) the queries' people, who are drawn again.
    """
    valid = protected.valid & raw.valid
    rows = {
        "rank-1": (protected.hits(1)[valid], raw.hits(1)[valid]),
        "mAP": (protected.average_precision[valid], raw.average_precision[valid]),
    }
    return tuple(
        Measurement(by, DIFFERENCE, difference_score(metric, first, second, people[valid], role, rng, _told(note)))
        for metric, (first, second) in rows.items()
    )


def _told(note: str) -> str:
    return "; ".join(filter(None, ["in shares of the searches, protected minus raw", note]))


def difference_score(
    metric: str,
    first: NDArray[np.float64],
    second: NDArray[np.float64],
    people: NDArray[np.int64],
    role: Role,
    rng: Randomness,
    note: str,
) -> Score:
    """mean(first) - mean(second) of the same queries (Q,), each value in [0, 1]; people (Q,) are drawn again."""
    change = first - second
    value, low, high = float(change.mean()), None, None
    notes = [note]
    count = len(np.unique(people))
    if count < 2:
        notes.append("no interval: one person only")
    elif (change == change[0]).all():
        low, high = all_alike(float(change[0]), count)
    else:
        # The draws of all other scores, so that they can be compared.
        generator = rng.child("bootstrap").numpy()
        found = paired_difference(first, second, people, generator=generator, draws=DRAWS, confidence=CONFIDENCE)
        low, high = found.low, found.high
    return Score(
        metric=metric,
        value=value,
        role=role,
        higher_is_better=role is Role.UTILITY,
        low=low,
        high=high,
        note="; ".join(filter(None, notes)),
    )


def all_alike(change: float, people: int) -> tuple[float, float]:
    """The interval of a change in [-1, 1] that is the same for each of so many people.

    All bootstrap draws are then alike, but other people need not be: at most a share u of them (exact, Clopper-
    Pearson) may differ, by whatever a change can differ.

    >>> low, high = all_alike(0.0, 3000)
    >>> f"{low:.2%} {high:.2%}"
    '-0.12% 0.12%'
    """
    share = clopper_pearson(0, people, confidence=CONFIDENCE).high
    return change - share * (1.0 + change), change + share * (1.0 - change)
