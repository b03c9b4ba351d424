"""What a gallery tells: an answer to a search, what an add did, what was spent."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

from veilkit.gallery.facts import Facts
from veilkit.gallery.private import Private
from veilkit.gallery.reconciling import Agreement
from veilkit.privacy import Budget, Cost, Mechanism, Spent, composed_epsilon


@dataclass(frozen=True, slots=True)
class Added:
    """added: released and stored now. kept: known from before, at no cost. resumed: paid for by an add that was
    stopped, stored now."""

    added: int
    kept: int
    resumed: int = 0


@dataclass(frozen=True, slots=True)
class Level:
    """All who were charged for as many `releases`: `count` records or people, `epsilon` spent and `left`."""

    releases: int
    count: int
    epsilon: float
    left: float


def levels(charged: Iterable[str], cost: Cost, budget: Budget, *, unpaid: int = 0) -> tuple[Level, ...]:
    """Who has lost how much, those with most releases first.

    charged: for each release whose budget it was. unpaid: how many more may be anybody's.
    """
    found = []
    for releases, count in sorted(Counter(Counter(charged).values()).items(), reverse=True):
        spent = composed_epsilon({cost: releases + unpaid}, delta=budget.delta)
        found.append(Level(releases, count, spent, max(budget.epsilon - spent, 0.0)))
    return tuple(found)


@dataclass(frozen=True, slots=True)
class Statement:
    """What was spent, and whether books and vectors agree.

    epsilon_claimed, epsilon_proved: of each vector by itself. worst: the record or person (by pseudonym) who was
    charged most. spent: the most that anybody can have lost, all releases composed: what is out and was charged to
    nobody counts against everybody whose it may be. in_ledger, in_store: how many vectors were paid for, and how many
    the store holds. missing: paid for and not stored (an add was stopped). foreign: stored and not paid for (an older
    ledger was restored). changed: stored as another vector than the one paid for. unnamed: paid for and not in the
    private list.
    """

    per: str
    budget: Budget
    epsilon_claimed: float
    epsilon_proved: float
    worst: Spent | None
    spent: float
    levels: tuple[Level, ...]
    in_ledger: int
    in_store: int
    missing: int
    foreign: int
    changed: int = 0
    unnamed: int = 0

    @property
    def agree(self) -> bool:
        """Whether the store holds exactly what was paid for."""
        return not self.missing and not self.foreign and not self.changed

    @property
    def remedy(self) -> str | None:
        """The command of `veilkit gallery` that mends what does not agree, if anything."""
        if self.foreign or self.changed or self.unnamed:
            return "reconcile"
        return "add" if self.missing else None


def unpaid_releases(per: str, foreign: int, changed: int) -> int:
    """How many releases beyond the ledger's may be those of one record or person.

    An unknown pseudonym is a record of its own, but may be any person's; another vector under a known one is a second
    release of that record.
    """
    return foreign + changed if per == "person" else min(changed, 1)


def make_statement(private: Private, facts: Facts, mechanism: Mechanism, found: Agreement) -> Statement:
    """The statement of a gallery whose ledger and store were compared by names and vectors."""
    changed = len(found.changed or ())
    unpaid = unpaid_releases(facts.per, found.foreign, changed)
    worst = private.ledger.worst()
    most = max(0 if worst is None else worst.releases + unpaid, unpaid, 1 if found.foreign else 0)
    return Statement(
        per=facts.per,
        budget=facts.budget,
        epsilon_claimed=facts.epsilon_claimed,
        epsilon_proved=facts.epsilon_proved,
        worst=worst,
        spent=composed_epsilon({mechanism.cost: most}, delta=facts.budget.delta),
        levels=levels(
            (entry.charged for entry in private.ledger.entries()), mechanism.cost, facts.budget, unpaid=unpaid
        ),
        in_ledger=len(found.paid),
        in_store=found.stored,
        missing=len(found.missing),
        foreign=found.foreign,
        changed=changed,
        unnamed=len(private.catalogue.unknown(found.paid)),
    )
