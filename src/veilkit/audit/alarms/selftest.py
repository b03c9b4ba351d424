"""The auditor checks itself: its metric and its division of people are given cases whose answers are known."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import torch

from veilkit.attacks import AttackTarget, Budget
from veilkit.attacks.people_split import divide
from veilkit.attacks.pictures import HeldPictures
from veilkit.attacks.search import Search, plan_search
from veilkit.audit.result import Alarm
from veilkit.rng import Randomness

_PEOPLE, _SHOTS = 12, 3
_EXACT = 1e-6


def check_auditor() -> Iterator[Alarm]:
    """Alarms where the metric or the division give a wrong answer; none on a sound auditor."""
    yield from _metric()
    yield from _division()


def known_search() -> tuple[Search, list[str]]:
    """A search for 12 people of three pictures each, and who is in each picture."""
    people = [f"person {place % _PEOPLE}" for place in range(_PEOPLE * _SHOTS)]
    everything = list(range(len(people)))
    search, _ = plan_search(people, [None] * len(people), everything, everything)
    assert search is not None
    return search, people


def _metric() -> Iterator[Alarm]:
    """Features of length one that name the person must be found always; those that name anybody else, never first.

    Worked out by hand: in the second case both right entries stand behind all wrong ones, at the last two places of
    35, so that the precision there is 1/34 and 2/35.
    """
    search, people = known_search()
    codes = np.array([int(person.split()[1]) for person in people])
    right = np.eye(_PEOPLE, dtype=np.float32)[codes]
    wrong = np.ones((_PEOPLE, _PEOPLE), dtype=np.float32) - np.eye(_PEOPLE, dtype=np.float32)
    last = float(np.mean([1 / 34, 2 / 35]))
    cases = (
        ("people who are told apart", search.find(right, right), 1.0, 1.0),
        ("people who are taken for all others", search.find(right, wrong[codes]), 0.0, last),
    )
    for what, result, rank, precision in cases:
        if abs(result.rank(1) - rank) > _EXACT or abs(result.mean_ap - precision) > _EXACT:
            yield Alarm(
                "metric",
                f"the search for people fails its test on {what}: Rank-1 {result.rank(1):.2%} and mAP "
                f"{result.mean_ap:.2%}, where {rank:.2%} and {precision:.2%} are known. No score here counts",
            )


def _division() -> Iterator[Alarm]:
    """Nobody may be on both sides, neither by code nor by picture: each person's pictures have their own value."""
    search, _ = known_search()
    codes = search.identities
    pictures = HeldPictures([torch.full((3, 4, 4), float(code + 1) / (_PEOPLE + 1)) for code in codes])
    target = AttackTarget(
        rng=Randomness.from_seed(0), protected=pictures, originals=pictures, people=codes, search=search,
        budget=Budget(updates=1),
    )  # fmt: skip
    division = divide(target)
    sides = [division.public.originals, division.victims.originals]
    values = [
        {round(float(side.load(index).mean()) * (_PEOPLE + 1)) for index in range(len(side))}
        for side in sides
        if side is not None
    ]
    both = len(values[0] & values[1])
    if both or division.on_both_sides or not values[0] or not values[1]:
        yield Alarm(
            "division",
            f"{max(both, division.on_both_sides)} of {_PEOPLE} people in a test case both teach an attacker and are "
            "attacked by it: attackers who learn are not scored on strangers. No score of theirs counts",
        )
