"""The accounts of a gallery: what each has lost, with what is out and in no ledger counted against them."""

from __future__ import annotations

from veilkit.gallery.agreement import Agreement
from veilkit.gallery.facts import Facts
from veilkit.gallery.private import Private
from veilkit.gallery.statement import Statement, levels
from veilkit.privacy import Mechanism, composed_epsilon


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
