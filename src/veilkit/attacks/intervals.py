"""Scores with intervals: people, not pictures, are drawn again."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from veilkit.metrics import RetrievalResult, bootstrap_means, clopper_pearson
from veilkit.rng import Randomness
from veilkit.types import Role, Score

DRAWS = 1000
CONFIDENCE = 0.95
RANKS = (1, 5, 10)


def mean_score(
    metric: str,
    values: NDArray[np.float64],
    people: NDArray[np.int64] | None,
    *,
    rng: Randomness,
    role: Role = Role.PRIVACY,
    higher_is_better: bool = False,
    note: str = "",
    rate: bool = False,
) -> Score:
    """The mean of values (N,) with its identity-clustered interval.

    people: (N,) codes; None where unknown, then pictures are drawn instead. One person alone gives no interval.
    rate: values are hits, so that where all or none hit the exact interval of so many people is given.
    """
    rates = frozenset({metric} if rate else ())
    return _scores({metric: values}, people, rates, role, higher_is_better, rng, {metric: note})[0]


def retrieval_scores(
    found: RetrievalResult,
    people: NDArray[np.int64],
    *,
    rng: Randomness,
    chance: Mapping[str, float],
    role: Role = Role.PRIVACY,
    higher_is_better: bool = False,
    note: str = "",
) -> tuple[Score, ...]:
    """Rank-1, 5, 10, mAP and mINP of a search; `people` (Q,) are the queries' people.

    chance: by metric; those that are given are named in the note.
    """
    valid = found.valid
    rows = {f"rank-{k}": found.hits(k)[valid] for k in RANKS}
    rows["mAP"] = found.average_precision[valid]
    rows["mINP"] = found.inverse_negative_penalty[valid]
    rates = frozenset(f"rank-{k}" for k in RANKS)
    notes = {
        name: "; ".join(filter(None, [f"chance {chance[name]:.2%}" if name in chance else "", note])) for name in rows
    }
    return _scores(rows, people[valid], rates, role, higher_is_better, rng, notes)


def _scores(
    rows: Mapping[str, NDArray[np.float64]],
    people: NDArray[np.int64] | None,
    rates: frozenset[str],
    role: Role,
    higher_is_better: bool,
    rng: Randomness,
    notes: Mapping[str, str],
) -> tuple[Score, ...]:
    table = np.stack(list(rows.values()))
    clusters = np.arange(table.shape[1]) if people is None else people
    count = len(np.unique(clusters))
    remark = "" if people is not None else "pictures drawn, as people are not known"
    ends: list[tuple[float | None, float | None]] = [(None, None)] * len(rows)
    if count < 2:
        remark = f"no interval: one {'picture' if people is None else 'person'} only"
    else:
        draws = bootstrap_means(table, clusters, generator=rng.child("bootstrap").numpy(), draws=DRAWS)
        tail = (1.0 - CONFIDENCE) / 2.0
        for place, name in enumerate(rows):
            mean = float(table[place].mean())
            if name in rates and mean in (0.0, 1.0):
                # All draws of all hits or none are alike; the exact interval of so many people is not empty.
                exact = clopper_pearson(round(mean * count), count, confidence=CONFIDENCE)
                ends[place] = exact.low, exact.high
            else:
                low, high = np.quantile(draws[place], [tail, 1.0 - tail])
                ends[place] = float(low), float(high)
    texts = ["; ".join(filter(None, [notes.get(name, ""), remark])) for name in rows]
    return tuple(
        Score(name, float(values.mean()), role, higher_is_better, low, high, text)
        for name, values, (low, high), text in zip(rows, table, ends, texts, strict=True)
    )
