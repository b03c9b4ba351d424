"""The private list of what stands behind each pseudonym. It never holds a vector.

Entries are written before anything is charged, so that whatever the ledger has paid for can be stored later with its
camera and time. An entry that was never charged promises nothing and may be replaced.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from veilkit.errors import DestinationError

_PAGE = 500
_SCHEMA = """
CREATE TABLE IF NOT EXISTS records (
    pseudonym TEXT PRIMARY KEY,
    record BLOB NOT NULL,
    person BLOB,
    camera TEXT,
    time INTEGER,
    content BLOB NOT NULL
) WITHOUT ROWID
"""


@dataclass(frozen=True, slots=True)
class Entry:
    """What stands behind a pseudonym. time: ms since 1970. content: a keyed hash of what was released."""

    pseudonym: str
    record: str
    person: str | None
    camera: str | None
    time: int | None
    content: bytes


class Catalogue:
    """Entries by pseudonym, in SQLite. The ledger's lock guards it: open that first."""

    def __init__(self, file: Path) -> None:
        try:
            self._db = sqlite3.connect(file, isolation_level=None)
            file.chmod(0o600)
            self._db.execute("PRAGMA journal_mode=WAL")
            self._db.execute("PRAGMA synchronous=FULL")
            self._db.execute(_SCHEMA)
        except (sqlite3.Error, OSError) as error:
            raise DestinationError(f"the gallery's private list {file} cannot be opened: {error}") from None

    def close(self) -> None:
        """Give the file back."""
        self._db.close()

    def put(self, entries: Iterable[Entry]) -> None:
        """Note entries, all or none, in place of older ones."""
        rows = [
            (e.pseudonym, _blob(e.record), _blob(e.person), e.camera, e.time, e.content) for e in entries
        ]  # fmt: skip
        try:
            self._db.execute("BEGIN IMMEDIATE")
            self._db.executemany("INSERT OR REPLACE INTO records VALUES (?, ?, ?, ?, ?, ?)", rows)
            self._db.execute("COMMIT")
        except sqlite3.Error as error:
            if self._db.in_transaction:
                self._db.execute("ROLLBACK")
            raise DestinationError(f"the gallery's private list cannot be written: {error}") from None

    def get(self, pseudonyms: Sequence[str]) -> dict[str, Entry]:
        """Those of `pseudonyms` that are known."""
        return {entry.pseudonym: entry for entry in self._entries(pseudonyms)}

    def _entries(self, pseudonyms: Sequence[str]) -> Iterator[Entry]:
        for start in range(0, len(pseudonyms), _PAGE):
            page = pseudonyms[start : start + _PAGE]
            query = f"SELECT * FROM records WHERE pseudonym IN ({', '.join('?' * len(page))})"  # noqa: S608
            for pseudonym, record, person, camera, time, content in self._db.execute(query, page):
                yield Entry(pseudonym, _text(record) or "", _text(person), camera, time, content)


def _blob(text: str | None) -> bytes | None:
    """Names may be paths, and paths any bytes."""
    return None if text is None else text.encode("utf-8", "surrogateescape")


def _text(blob: bytes | None) -> str | None:
    return None if blob is None else blob.decode("utf-8", "surrogateescape")
