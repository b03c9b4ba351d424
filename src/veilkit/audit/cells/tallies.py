"""Searches tallied person by person: what it takes to compare two audits of the same originals, and no more."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from veilkit.audit.cells.differences import difference_score
from veilkit.audit.inputs.subject import Subject
from veilkit.audit.result import By, Tallies, Tally
from veilkit.rng import Randomness
from veilkit.types import Role, Score


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
