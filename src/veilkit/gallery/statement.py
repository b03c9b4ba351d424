"""What a gallery tells: an answer to a search, what an add did, what was spent."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

from veilkit.privacy import Budget, Cost, Spent, composed_epsilon


@dataclass(frozen=True, slots=True)
class Hit:
    """One answer: whose (a pseudonym), how near (cosine of query and noisy vector), which camera, when (ms)."""

    pseudonym: str
    score: float
    camera: str | None
    time: int | None


@dataclass(frozen=True, slots=True)
class Added:
    """added: released and stored now. kept: known from before, at no cost. resumed: paid for by an add that was
    stopped, stored now."""

    added: int
    kept: int
    resumed: int = 0


@dataclass(frozen=True, slots=True)
class Level:
    """All who have lost the same: `count` records or people of `releases` each, `epsilon` spent and `left`."""

    releases: int
    count: int
    epsilon: float
    left: float


def levels(charged: Iterable[str], cost: Cost, budget: Budget) -> tuple[Level, ...]:
    """Who has lost how much, those with most releases first. charged: for each release whose budget it was."""
    found = []
    for releases, count in sorted(Counter(Counter(charged).values()).items(), reverse=True):
        spent = composed_epsilon({cost: releases}, delta=budget.delta)
        found.append(Level(releases, count, spent, max(budget.epsilon - spent, 0.0)))
    return tuple(found)


@dataclass(frozen=True, slots=True)
class Statement:
    """What was spent, and whether books and vectors agree.

    epsilon_claimed, epsilon_proved: of each vector by itself. worst: the record or person (by pseudonym) who has lost
    most. in_ledger, in_store: how many vectors were paid for, and how many the store holds. missing: paid for and not
    stored (an add was stopped). foreign: stored and not paid for.
    """

    per: str
    budget: Budget
    epsilon_claimed: float
    epsilon_proved: float
    worst: Spent | None
    levels: tuple[Level, ...]
    in_ledger: int
    in_store: int
    missing: int
    foreign: int

    @property
    def spent(self) -> float:
        """The most that anybody has lost, all releases composed."""
        return 0.0 if self.worst is None else self.worst.epsilon

    @property
    def agree(self) -> bool:
        """Whether the store holds exactly what was paid for."""
        return not self.missing and not self.foreign
