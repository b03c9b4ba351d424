"""Whether the store holds just what the ledger has paid for.

What the store holds is out. Where the ledger does not know of it, an older copy of the private folder was restored,
and a record drawn again would be out twice while one release is charged. So nothing is released until they agree.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from veilkit.errors import DataError
from veilkit.gallery.milvus import VectorStore
from veilkit.gallery.private import Entry, Private, pages
from veilkit.privacy import Mechanism

PAGE = 2000  # vectors compared at once


@dataclass(frozen=True, slots=True)
class Agreement:
    """paid: pseudonyms in the ledger, in their order. stored: how many vectors the store holds.

    missing: paid for and not stored. foreign: how many are stored and not paid for. changed: stored as another vector
    than the one that was paid for; None where vectors were not compared.
    """

    paid: tuple[str, ...]
    stored: int
    missing: tuple[str, ...]
    foreign: int
    changed: tuple[str, ...] | None = None

    def refuse_unpaid(self) -> None:
        """Raise DataError where something is out that nobody was charged for."""
        if self.foreign or self.changed:
            other = f", and {len(self.changed)} as other vectors than the ledger's" if self.changed else ""
            raise DataError(
                f"the store holds {self.foreign} vectors that the ledger does not know of, beside "
                f"{len(self.paid) - len(self.missing)} that it does{other}: most likely the private files are an "
                "older copy. Nothing was changed: to release those records again would go uncharged. Restore the "
                "latest copy; without one, `veilkit gallery reconcile GALLERY SOURCE` charges them, SOURCE being "
                "what was added since that copy"
            )


def compare(private: Private, store: VectorStore, mechanism: Mechanism, *, vectors: bool) -> Agreement:
    """Ledger against store, by names; by vectors as well if wanted, which takes three times as long."""
    paid = private.released()
    stored = store.count() if store.exists() else 0
    held: set[str] = set()
    changed: list[str] = []
    for page in pages(paid if stored else [], PAGE):
        if not vectors:
            held |= store.held(page)
            continue
        ours = private.ledger.released(mechanism, page)
        for name, (vector, _, _) in store.vectors(page).items():
            held.add(name)
            if name not in ours or vector.tobytes() != ours[name].astype("float32").tobytes():
                changed.append(name)
    missing = tuple(name for name in paid if name not in held)
    return Agreement(tuple(paid), stored, missing, stored - len(held), tuple(changed) if vectors else None)


_PSEUDONYM = re.compile(r"[a-z2-7]{26}")


@dataclass(frozen=True, slots=True)
class Reconciled:
    """What a reconciliation did, and what it left.

    charged: vectors that were out and unknown to the ledger, charged now. named: records entered in the private list.
    stored: paid for and missing in the store, stored now. unknown: vectors still out that nobody was charged for.
    unnamed: records paid for that the private list still does not know.
    """

    charged: int
    named: int
    stored: int
    unknown: int
    unnamed: int

    @property
    def done(self) -> bool:
        """Whether everything is charged and named."""
        return not self.unknown and not self.unnamed


def merged(private: Private, store: VectorStore, given: Sequence[Entry]) -> dict[str, Entry]:
    """Of what is given, by pseudonym, all that is paid for or out; an error where it is known as something else."""
    names = [entry.pseudonym for entry in given]
    relevant = store.held(names) | private.ledger.owners(names).keys()
    known = {name: entry for name, entry in private.catalogue.get(names).items() if name in relevant}
    for row, entry in enumerate(given):
        if entry.pseudonym not in relevant:
            continue
        before = known.setdefault(entry.pseudonym, entry)
        # Not camera and time: those in the store are out, and count.
        if (before.person, before.content) != (entry.person, entry.content):
            raise DataError(
                f"the record in row {row} is known with another content or person; nothing was changed: give what "
                "was added, as it was added"
            )
    return known


def charge_unpaid(private: Private, store: VectorStore, mechanism: Mechanism, given: Mapping[str, Entry]) -> int:
    """Charge whatever is out and has a known owner; returns how many vectors that were."""
    agreement = compare(private, store, mechanism, vectors=True)
    paid, count = set(agreement.paid), 0
    out = [name for name in store.names() if name not in paid] if agreement.foreign else []
    for part in pages(out, PAGE):
        entries = {**{name: given[name] for name in part if name in given}, **private.catalogue.get(part)}
        if private.ledger.per == "record":
            chosen = [name for name in part if _PSEUDONYM.fullmatch(name)]
            persons = None
        else:
            chosen = [name for name in part if name in entries]
            persons = [private.person(entries[name].person or "") for name in chosen]
        count += _adopt(private, store, mechanism, chosen, persons)
    for part in pages(agreement.changed or (), PAGE):
        owners = private.ledger.owners(part)
        persons = None if private.ledger.per == "record" else [owners[name] for name in part]
        count += _adopt(private, store, mechanism, part, persons)
        # Equal records, equal vectors: from now on the one that was paid for first.
        rows, ours = store.vectors(part), private.ledger.released(mechanism, part)
        store.upsert(
            part, np.stack([ours[name] for name in part]), [rows[n][1] for n in part], [rows[n][2] for n in part]
        )
    return count


def _adopt(
    private: Private, store: VectorStore, mechanism: Mechanism, names: Sequence[str], persons: list[str] | None
) -> int:
    if not names:
        return 0
    rows = store.vectors(names)
    if len(rows) != len(names):
        raise DataError("the store is being changed by another process: stop it, and give the command again")
    vectors = np.stack([rows[name][0] for name in names])
    return private.ledger.adopt(mechanism, vectors, records=list(names), persons=persons)


def name_paid(private: Private, store: VectorStore, given: Mapping[str, Entry]) -> int:
    """Note what stands behind records that are paid for and not in the private list; returns how many."""
    owners, count = private.ledger.owners(list(given)), 0
    for part in pages(private.catalogue.unknown(list(owners)), PAGE):
        rows, entries = store.vectors(part), [given[name] for name in part]
        if private.ledger.per == "person" and any(
            owners[entry.pseudonym] != private.person(entry.person or "") for entry in entries
        ):
            raise DataError("a record was released as another person's: give what was added, as it was added")
        private.catalogue.put(
            replace(entry, camera=rows[entry.pseudonym][1], time=rows[entry.pseudonym][2])
            if entry.pseudonym in rows
            else entry
            for entry in entries
        )
        count += len(part)
    return count
