"""What protection changes, search by search: the same queries among protected pictures and among originals."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from veilkit.attacks.intervals import CONFIDENCE, DRAWS
from veilkit.audit.inputs.subject import Subject
from veilkit.audit.result import DIFFERENCE, By, Measurement, Tallies, Tally
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
    note = "; ".join(filter(None, ["in shares of the searches, protected minus raw", note]))
    rows = {
        "rank-1": (protected.hits(1)[valid], raw.hits(1)[valid]),
        "mAP": (protected.average_precision[valid], raw.average_precision[valid]),
    }
    return tuple(
        Measurement(by, DIFFERENCE, difference_score(metric, first, second, people[valid], role, rng, note))
        for metric, (first, second) in rows.items()
    )


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


def tally(subject: Subject, tallies: Iterable[Tally]) -> Tallies | None:
    """The tallies of a subject's searches; None where nobody is searched for or the originals are not known."""
    search, found = subject.search, tuple(tallies)
    if search is None or subject.originals is None or not found:
        return None
    asked = search.candidates()[0] > 0
    codes = search.identities[search.query][asked]
    order = hashlib.sha256()
    for file in subject.originals.files:
        order.update(file.sha256.encode())
    for part in (search.query, search.gallery, search.identities, search.cameras):
        if part is None:
            continue
        order.update(np.ascontiguousarray(part, dtype="<i8").tobytes())
    return Tallies(order.hexdigest(), hits_by_person(np.ones(len(codes)), codes), found)


def hits_by_person(hits: NDArray[np.float64], people: NDArray[np.int64]) -> tuple[int, ...]:
    """Sums of (Q,) hits, 0 or 1, over each person of (Q,) codes, in the order of the codes.

    >>> hits_by_person(np.array([1.0, 0.0, 1.0]), np.array([7, 2, 7]))
    (0, 2)
    """
    _, person = np.unique(people, return_inverse=True)
    return tuple(int(count) for count in np.bincount(person, weights=hits).round())


def tallied_difference(first: Tallies, second: Tallies, by: By, setting: str) -> Score | None:
    """Rank-1 of the first audit minus that of the second over the same searches, in [-1, 1]; None if there is none.

    People are drawn again, the same for both. Within a person only sums count, so the order of searches may be lost.
    """
    if (first.order, first.searches) != (second.order, second.searches):
        return None
    hits = [next((t.hits for t in each.tallies if (t.by, t.setting) == (by, setting)), None)
            for each in (first, second)]  # fmt: skip
    if hits[0] is None or hits[1] is None:
        return None
    people = np.repeat(np.arange(len(first.searches)), first.searches)
    values = [
        np.concatenate([np.arange(count) < right for count, right in zip(first.searches, each, strict=True)])
        for each in (hits[0], hits[1])
    ]
    role = Role.UTILITY if by == "expert" else Role.PRIVACY
    note = "in shares of the searches, this audit minus the first"
    one, other = (each.astype(np.float64) for each in values)
    return difference_score("rank-1", one, other, people, role, Randomness.from_seed(0), note)
