"""The file under a ledger: SQLite, because it must survive a kill at any moment; one process at a time writes it.

It is checked as a whole when it is opened: what a damaged ledger says may be less than what was spent.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path

from veilkit.errors import ConfigError, DataError, DestinationError
from veilkit.locks import take_lock
from veilkit.privacy.cost import Cost
from veilkit.privacy.database import Database

_LOST = "restore it from a copy, since a new one would not know what has been spent"
_SCHEMA = """
CREATE TABLE about (name TEXT PRIMARY KEY, value TEXT NOT NULL);
CREATE TABLE mechanisms (
    id INTEGER PRIMARY KEY,
    description TEXT NOT NULL UNIQUE,
    epsilon REAL NOT NULL,
    delta REAL NOT NULL,
    multiplier REAL
);
CREATE TABLE releases (
    record TEXT NOT NULL,
    mechanism INTEGER NOT NULL REFERENCES mechanisms (id),
    charged TEXT NOT NULL,
    at TEXT NOT NULL,
    vector BLOB NOT NULL,
    PRIMARY KEY (record, mechanism)
) WITHOUT ROWID;
CREATE INDEX by_charged ON releases (charged, mechanism);
"""
_OBJECTS = {"about": "table", "mechanisms": "table", "releases": "table", "by_charged": "index"}
_WRONG_ROWS = (
    "SELECT COUNT(*) FROM about WHERE typeof(name) != 'text' OR typeof(value) != 'text'",
    "SELECT COUNT(*) FROM mechanisms WHERE typeof(description) != 'text' "
    "OR typeof(epsilon) != 'real' OR epsilon <= 0 OR typeof(delta) != 'real' OR NOT delta BETWEEN 0 AND 1 "
    "OR typeof(multiplier) NOT IN ('real', 'null') OR multiplier <= 0",
    "SELECT COUNT(*) FROM releases WHERE typeof(record) != 'text' OR typeof(charged) != 'text' "
    "OR typeof(at) != 'text' OR typeof(vector) != 'blob' OR mechanism NOT IN (SELECT id FROM mechanisms)",
)


@dataclass(frozen=True, slots=True)
class Entry:
    """One release: of which record, charged to whom, when (UTC, ISO 8601), by which mechanism, at what cost."""

    record: str
    charged: str
    at: str
    mechanism: str
    cost: Cost


class Store:
    """Tables of releases and their costs. Opened on creation; `close` gives the file back."""

    def __init__(self, file: Path, *, facts: Mapping[str, str] | None) -> None:
        """Open `file`, or make it with `facts` about it; without any, a missing file is an error."""
        if facts is None and not (file.is_file() and file.stat().st_size):
            raise ConfigError(
                f"{file} is a new ledger: give it a budget=Budget(epsilon=..., delta=...) and per='record' or "
                "per='person'"
            )
        unwritable = f"the ledger {file} cannot be written"
        try:
            file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        except OSError as error:
            raise DestinationError(f"{unwritable}: {error.strerror}") from None
        busy = "another process holds this ledger: wait for it, or stop it first"
        self._lock = take_lock(file, busy=busy, unwritable=unwritable)
        try:
            self._db = Database(file, "ledger", _LOST)
        except BaseException:
            os.close(self._lock)
            raise
        try:
            if facts is not None and self._db.empty:
                with self._db.transaction():
                    for statement in _SCHEMA.split(";")[:-1]:
                        self._db.run(statement)
                    self._db.run("INSERT INTO about VALUES (?, ?)", facts.items())
            self._db.check(_OBJECTS, _WRONG_ROWS)
            self.about: dict[str, str] = dict(self._db.ask("SELECT name, value FROM about"))
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Give the file back."""
        self._db.close()
        os.close(self._lock)  # only now: closing it drops SQLite's own locks on the file as well

    def transaction(self) -> AbstractContextManager[None]:
        """All that is done inside is kept, or none of it."""
        return self._db.transaction()

    def damaged(self, why: str) -> DataError:
        """The error for a ledger that cannot be relied on."""
        return self._db.damaged(why)

    def number(self, description: str, cost: Cost) -> int:
        """The number of a mechanism in this file."""
        self._db.run(
            "INSERT OR IGNORE INTO mechanisms (description, epsilon, delta, multiplier) VALUES (?, ?, ?, ?)",
            [(description, cost.epsilon, cost.delta, cost.multiplier)],
        )
        return int(next(self._db.ask("SELECT id FROM mechanisms WHERE description = ?", (description,)))[0])

    def descriptions(self) -> list[str]:
        """The mechanisms that anything was released by."""
        rows = self._db.ask("SELECT description FROM mechanisms WHERE id IN (SELECT mechanism FROM releases)")
        return [description for (description,) in rows]

    def add(self, mechanism: int, at: str, rows: Iterable[tuple[str, str, bytes]]) -> None:
        """Charge for releases: of each the record, who is charged, and the vector."""
        self._db.run(
            "INSERT INTO releases (mechanism, at, record, charged, vector) VALUES (?, ?, ?, ?, ?)",
            ((mechanism, at, *row) for row in rows),
        )

    def blank(self, records: Sequence[str]) -> None:
        """Overwrite the vectors of records by zeros; what they cost stays."""
        self._db.run("PRAGMA secure_delete = ON")
        self._db.run(
            "UPDATE releases SET vector = zeroblob(length(vector)) WHERE record = ?", ((name,) for name in records)
        )

    def owners(self, records: Sequence[str]) -> dict[str, str]:
        """Who was charged for those of `records` that are known."""
        query = "SELECT record, charged FROM releases WHERE record IN ({})"
        return {record: charged for record, charged in self._db.ask_each(query, records)}  # noqa: C416 - rows are any

    def vectors(self, mechanism: int, records: Sequence[str]) -> dict[str, bytes]:
        """The vectors of those of `records` that one mechanism has released."""
        query = "SELECT record, mechanism, vector FROM releases WHERE record IN ({})"
        return {record: vector for record, kind, vector in self._db.ask_each(query, records) if kind == mechanism}

    def costs(self, keys: Sequence[str]) -> dict[str, Counter[Cost]]:
        """How many releases of each cost were charged to each key."""
        query = (
            "SELECT charged, epsilon, delta, multiplier, COUNT(*) FROM releases JOIN mechanisms ON id = mechanism "
            "WHERE charged IN ({}) GROUP BY charged, mechanism"
        )
        found: dict[str, Counter[Cost]] = {key: Counter() for key in keys}
        for key, epsilon, delta, multiplier, count in self._db.ask_each(query, keys):
            found[key][Cost(epsilon, delta, multiplier)] += count
        return found

    def histories(self) -> dict[tuple[tuple[int, int], ...], str]:
        """Every different history (mechanism and number of releases), and one who has it."""
        found: dict[tuple[tuple[int, int], ...], str] = {}
        history: list[tuple[int, int]] = []
        last = None
        rows = self._db.ask("SELECT charged, mechanism, COUNT(*) FROM releases GROUP BY 1, 2 ORDER BY 1, 2")
        for key, mechanism, count in rows:
            if last is not None and key != last:
                found.setdefault(tuple(history), last)
                history = []
            last = key
            history.append((mechanism, count))
        if last is not None:
            found.setdefault(tuple(history), last)
        return found

    def entries(self, key: str | None) -> Iterator[Entry]:
        """Releases in the order of their names."""
        rows = self._db.ask(
            "SELECT record, charged, at, description, epsilon, delta, multiplier FROM releases "
            "JOIN mechanisms ON id = mechanism WHERE ? IS NULL OR charged = ? ORDER BY record, mechanism",
            (key, key),
        )
        for record, charged, at, description, *cost in rows:
            yield Entry(record, charged, at, description, Cost(*cost))

    def count(self) -> int:
        """How many releases there are."""
        return int(next(self._db.ask("SELECT COUNT(*) FROM releases"))[0])
