"""The gallery: features in, noisy vectors stored, searched and accounted for."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Self

import numpy as np
import torch
from torch import Tensor

from veilkit.errors import ConfigError, DataError
from veilkit.gallery.creation import create_gallery
from veilkit.gallery.export import Exported, write_export
from veilkit.gallery.facts import Facts, read_facts
from veilkit.gallery.inputs import Time, checked_cameras, checked_names, checked_times, milliseconds
from veilkit.gallery.milvus import Hit, VectorStore, expression
from veilkit.gallery.private import Entry, Private, key_beside
from veilkit.gallery.reconciling import Reconciled, charge_unpaid, compare, merged, name_paid
from veilkit.gallery.statement import Added, Statement, make_statement
from veilkit.privacy import Budget, Mechanism, unit
from veilkit.privacy.ledger import Per
from veilkit.privacy.mechanism import rows
from veilkit.progress import Progress

BATCH = 2000  # records paid for and stored at once
MOST = 16_384  # answers to one query, Milvus' own limit


class Gallery:
    """A protected feature gallery in a folder, used in a `with` block.

    Searching needs the folder only. The owner's side (`key`, by default FOLDER.private/key, the ledger beside it) is
    opened by what needs it: add, budget, export, names.
    """

    def __init__(self, folder: Path | str, facts: Facts, *, key: Path | str | None = None) -> None:
        self.folder, self.facts = Path(folder), facts
        self.mechanism = facts.make_mechanism()
        self.key_file = key_beside(self.folder.resolve()) if key is None else Path(key)
        self._store = VectorStore(facts.uri(self.folder.resolve()), facts.collection, dimension=facts.dimension)
        self._private: Private | None = None
        self._in_order = self._changed = False

    @classmethod
    def create(
        cls,
        folder: Path | str,
        *,
        mechanism: Mechanism,
        budget: Budget,
        per: Per,
        expert: tuple[str, str] | None = None,
        url: str | None = None,
        collection: str | None = None,
        key: Path | str | None = None,
    ) -> Self:
        """Make an empty gallery; the promise it makes cannot be changed later.

        mechanism: what every vector goes through. budget: of each record or person, as `per` says. expert: name and
        fingerprint of who makes features of pictures. url: of a Milvus server; a file in the folder without.
        """
        folder, key = Path(folder), key_beside(Path(folder).resolve()) if key is None else Path(key)
        facts = create_gallery(folder, key, mechanism, budget, per, expert, url, collection)
        return cls(folder, facts, key=key)

    @classmethod
    def open(cls, folder: Path | str, *, key: Path | str | None = None) -> Self:
        """The gallery that is in `folder`."""
        return cls(folder, read_facts(Path(folder)), key=key)

    def __enter__(self) -> Self:
        self._store.__enter__()
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        try:
            if self._changed and kind is None:
                self._store.settle()
        finally:
            if self._private is not None:
                self._private.close()
                self._private = None
            self._store.__exit__()

    def add(
        self,
        features: Tensor,
        *,
        records: Sequence[str],
        persons: Sequence[str | None] | None = None,
        cameras: Sequence[str | None] | None = None,
        times: Sequence[Time | None] | None = None,
        contents: Sequence[bytes] | None = None,
        progress: Progress | None = None,
    ) -> Added:
        """Release features (N, D), of any length, and store what was released. All are checked before any is charged.

        records: a name for each, which stands for its content: known ones with the same content cost nothing, with
        another they are refused. persons: whose they are, needed where the budget is per person. contents: what
        identifies the content, the feature itself by default. Stopped at any moment, the same call goes on.
        """
        private = self._owner()
        vectors = unit(torch.from_numpy(rows(features, dimension=self.facts.dimension)).float())
        entries = self._entries(vectors, records, persons, cameras, times, contents)
        resumed = self.resume()
        private.refuse_unnamed([entry.pseudonym for entry in entries])
        places = self._new(entries)
        new = [entries[place] for place in places]
        self.check(records=[entry.record for entry in new], persons=[entry.person for entry in new])
        if progress is not None:
            progress.advance(len(entries) - len(places), kept=len(entries) - len(places))
        # In the order of pseudonyms: the order of names would tell who belongs together.
        places.sort(key=lambda place: entries[place].pseudonym)
        for start in range(0, len(places), BATCH):
            part = places[start : start + BATCH]
            batch = [entries[place] for place in part]
            names = [entry.pseudonym for entry in batch]
            if self.facts.url:  # a file is locked, but to a server somebody else may be adding
                self._refuse_held(names)
            private.catalogue.put(batch)
            released = private.ledger.release(
                self.mechanism, vectors[part], records=names, persons=self._charged([entry.person for entry in batch])
            )
            self._upsert(batch, released.numpy())
            if progress is not None:
                progress.advance(len(part))
        return Added(len(places), len(entries) - len(places), resumed)

    def withdraw(self, records: Sequence[str]) -> int:
        """Take records out of the store, the private list and the ledger's vectors, for good; returns how many.

        What they cost stays charged, since it was out. A withdrawn record cannot be added again.
        """
        private = self._owner()
        names = list(private.catalogue.get([private.pseudonym(str(record)) for record in records]))
        if names:
            private.catalogue.withdraw(names)
            private.ledger.blank(names)
            self._store.delete(names)
            self._changed = True
        return len(names)

    def check(self, *, records: Sequence[str], persons: Sequence[str | None] | None = None) -> None:
        """Raise BudgetError where these records could not all be added; nothing is changed."""
        private = self._owner()
        if not records:
            return
        names = [private.pseudonym(str(name)) for name in checked_names("record", records, len(records))]
        private.refuse_unnamed(names)
        private.ledger.check(self.mechanism, records=names, persons=self._charged(self._persons(persons, len(names))))

    def resume(self) -> int:
        """Store what an add that was stopped has paid for; returns how many there were.

        An error where the store holds what the ledger does not know of; see `reconcile`.
        """
        if self._in_order:
            return 0
        private = self._owner()
        self._store.make()
        found = compare(private, self._store, self.mechanism, vectors=False)
        found.refuse_unpaid()
        missing = found.missing
        private.refuse_unnamed(missing)
        for start in range(0, len(missing), BATCH):
            part = missing[start : start + BATCH]
            known = private.catalogue.get(part)
            paid = private.ledger.released(self.mechanism, part)
            self._upsert([known[name] for name in part], np.stack([paid[name] for name in part]))
        self._in_order = True
        return len(missing)

    def search(
        self,
        queries: Tensor,
        *,
        limit: int = 10,
        cameras: Sequence[str] = (),
        since: Time | None = None,
        until: Time | None = None,
    ) -> list[list[Hit]]:
        """For each query (Q, D) the nearest released vectors, nearest first. It costs nothing: no query is released.

        cameras: only of these. since, until: only from the one on and before the other. A server sees the queries.
        """
        if isinstance(limit, bool) or not 1 <= limit <= MOST:
            raise ConfigError(f"expected a limit from 1 to {MOST}, but got {limit!r}")
        vectors = unit(torch.from_numpy(rows(queries, dimension=self.facts.dimension)).float())
        narrowed = expression(
            cameras=[str(camera) for camera in checked_cameras(cameras, len(cameras))],
            since=None if since is None else milliseconds(since),
            until=None if until is None else milliseconds(until),
        )
        return self._store.search(vectors.numpy(), limit, narrowed)

    def names(self, pseudonyms: Sequence[str]) -> dict[str, str]:
        """For the owner: the records behind pseudonyms."""
        return self._owner().names(pseudonyms)

    def pseudonyms(self, records: Sequence[str]) -> list[str]:
        """For the owner: the names under which records are, or would be, stored."""
        private = self._owner()
        return [private.pseudonym(record) for record in records]

    def known(self, record: str, content: bytes) -> bool | None:
        """For the owner: whether a record was released with just this content; None if it never was released."""
        private = self._owner()
        name = private.pseudonym(record)
        if not private.ledger.released(self.mechanism, [name]):
            return None
        entry = private.catalogue.get([name]).get(name)
        if entry is None:
            private.refuse_unnamed([name])
        return entry is not None and entry.content == private.content(content)

    def budget(self) -> Statement:
        """What was spent, and whether ledger and store agree."""
        private = self._owner()
        found = compare(private, self._store, self.mechanism, vectors=True)
        return make_statement(private, self.facts, self.mechanism, found)

    def reconcile(
        self,
        features: Tensor | None = None,
        *,
        records: Sequence[str] = (),
        persons: Sequence[str | None] | None = None,
        cameras: Sequence[str | None] | None = None,
        times: Sequence[Time | None] | None = None,
        contents: Sequence[bytes] | None = None,
    ) -> Reconciled:
        """After older private files were restored: charge what the store holds and the ledger does not know of.

        The arguments are those of `add`, of whatever was added since that copy: pseudonyms are keyed, so each record
        is recognised in the store, charged and noted in the private list. Nothing is released. Charges may exceed the
        budget, since what is out cannot be taken back. Without arguments, what the private list still knows is
        charged, and everything where budgets are per record.
        """
        private = self._owner(renew=True)
        self._store.make()
        given: dict[str, Entry] = {}
        if records:
            if features is not None:
                features = unit(torch.from_numpy(rows(features, dimension=self.facts.dimension)).float())
            given = merged(private, self._store, self._entries(features, records, persons, cameras, times, contents))
        charged = charge_unpaid(private, self._store, self.mechanism, given)
        named = name_paid(private, self._store, given)
        found = compare(private, self._store, self.mechanism, vectors=False)
        unnamed = len(private.catalogue.unknown(found.paid))
        stored = 0
        if not found.foreign and not private.catalogue.unknown(found.missing):
            stored = self.resume()
        self._changed = True
        return Reconciled(charged, named, stored, found.foreign, unnamed)

    def export(self, destination: Path | str) -> Exported:
        """Write what was released, for others to audit: features.npz and manifest.json in a new folder."""
        statement = self.budget()
        if not statement.agree:
            raise DataError(
                f"the ledger has {statement.in_ledger} vectors and the store {statement.in_store} "
                f"({statement.missing} missing, {statement.foreign} unknown, {statement.changed} other vectors): "
                f"`veilkit gallery {statement.remedy}`, then export"
            )
        return write_export(Path(destination), self.facts, statement, self._owner().released(), self._store)

    def _owner(self, *, renew: bool = False) -> Private:
        """The owner's side, opened when first needed."""
        if self._private is None:
            self._private = Private(self.key_file, self.facts, renew=renew)
        return self._private

    def _persons(self, persons: Sequence[str | None] | None, count: int) -> Sequence[str | None]:
        if self.facts.per == "person" and persons is None:
            raise ConfigError("this gallery's budget is per person: say whose each record is (persons, or --labels)")
        if persons is None:
            return [None] * count
        return checked_names("person", persons, count, unknown=self.facts.per == "record")

    def _entries(
        self,
        vectors: Tensor | None,
        records: Sequence[str],
        persons: Sequence[str | None] | None,
        cameras: Sequence[str | None] | None,
        times: Sequence[Time | None] | None,
        contents: Sequence[bytes] | None,
    ) -> list[Entry]:
        """What is to be noted of each record."""
        private, count = self._owner(), len(records if vectors is None else vectors)
        if contents is None:
            contents = [] if vectors is None else [row.tobytes() for row in vectors.numpy()]
        if len(contents) != count:
            raise DataError(f"expected one content for each of {count} features, but got {len(contents)}")
        return [
            Entry(private.pseudonym(str(record)), str(record), person, camera, time, private.content(content))
            for record, person, camera, time, content in zip(
                checked_names("record", records, count),
                self._persons(persons, count),
                checked_cameras(cameras, count),
                checked_times(times, count),
                contents,
                strict=True,
            )
        ]

    def _new(self, entries: Sequence[Entry]) -> list[int]:
        """The places of those not paid for; an error where one is known, here or from before, as something else."""
        private = self._owner()
        names = [entry.pseudonym for entry in entries]
        paid = private.ledger.released(self.mechanism, names)
        known = {name: entry for name, entry in private.catalogue.get(names).items() if name in paid}
        new, changed = [], []
        for place, entry in enumerate(entries):
            if known.setdefault(entry.pseudonym, entry) != entry:
                changed.append(place)
            elif known[entry.pseudonym] is entry:
                new.append(place)
        if changed:
            raise DataError(
                f"{len(changed)} of {len(entries)} records are known with another content, person, camera or time, "
                f"the first in row {changed[0]}; nothing was added: a record is released once, so give what has "
                "changed a new name"
            )
        return new

    def _refuse_held(self, names: Sequence[str]) -> None:
        if out := len(self._store.held(names)):
            raise DataError(
                f"{out} vectors that are about to be released have come into the store meanwhile: another copy of "
                "the private files must be in use; nothing more was added: see `veilkit gallery budget`"
            )

    def _charged(self, persons: Sequence[str | None]) -> list[str] | None:
        """Who is charged, as the ledger calls them."""
        return None if self.facts.per == "record" else [self._owner().person(person or "") for person in persons]

    def _upsert(self, batch: Sequence[Entry], vectors: np.ndarray) -> None:
        self._store.upsert(
            [entry.pseudonym for entry in batch],
            vectors.astype(np.float32),
            [entry.camera for entry in batch],
            [entry.time for entry in batch],
        )
        self._changed = True
