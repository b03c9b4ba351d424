"""The private list of what stands behind each pseudonym. It never holds a vector.

Entries are written before anything is charged, so that whatever the ledger has paid for can be stored later with its
camera and time. An entry that was never charged promises nothing and may be replaced.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from veilkit.errors import DataError, DestinationError
from veilkit.privacy.database import Database

_SCHEMA = """
CREATE TABLE records (
    pseudonym TEXT PRIMARY KEY,
    record BLOB NOT NULL,
    person BLOB,
    camera TEXT,
    time INTEGER,
    content BLOB NOT NULL
) WITHOUT ROWID
"""
_LOST = (
    "restore it from a copy; without one, move what is left of it away and run `veilkit gallery reconcile GALLERY "
    "SOURCE` with everything that was added, which writes a new one and releases nothing"
)
_WRONG_ROWS = (
    "SELECT COUNT(*) FROM records WHERE typeof(pseudonym) != 'text' OR typeof(record) != 'blob' "
    "OR typeof(person) NOT IN ('blob', 'null') OR typeof(camera) NOT IN ('text', 'null') "
    "OR typeof(time) NOT IN ('integer', 'null') OR typeof(content) != 'blob'"
)


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

    def __init__(self, file: Path, *, new: bool) -> None:
        """Open `file`; a missing one is an error unless it may be `new`."""
        if not file.is_file() and not new:
            raise DataError(f"the gallery's private list {file} is missing: {_LOST}")
        self._db = Database(file, "private list of a gallery", _LOST)
        try:
            file.chmod(0o600)
            if new and self._db.empty:
                self._db.run(_SCHEMA)
            self._db.check({"records": "table"}, [_WRONG_ROWS])
        except OSError as error:
            self.close()
            raise DestinationError(f"the gallery's private list {file} cannot be opened: {error}") from None
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Give the file back."""
        self._db.close()

    def put(self, entries: Iterable[Entry]) -> None:
        """Note entries, all or none, in place of older ones."""
        rows = [
            (e.pseudonym, _blob(e.record), _blob(e.person), e.camera, e.time, e.content) for e in entries
        ]  # fmt: skip
        with self._db.transaction():
            self._db.run("INSERT OR REPLACE INTO records VALUES (?, ?, ?, ?, ?, ?)", rows)

    def get(self, pseudonyms: Sequence[str]) -> dict[str, Entry]:
        """Those of `pseudonyms` that are known."""
        rows = self._db.ask_each("SELECT * FROM records WHERE pseudonym IN ({})", pseudonyms)
        return {
            pseudonym: Entry(pseudonym, _text(record) or "", _text(person), camera, time, content)
            for pseudonym, record, person, camera, time, content in rows
        }

    def unknown(self, pseudonyms: Sequence[str]) -> list[str]:
        """Those of `pseudonyms` that are not known."""
        rows = self._db.ask_each("SELECT pseudonym FROM records WHERE pseudonym IN ({})", pseudonyms)
        known = {pseudonym for (pseudonym,) in rows}
        return [pseudonym for pseudonym in pseudonyms if pseudonym not in known]


def _blob(text: str | None) -> bytes | None:
    """Names may be paths, and paths any bytes."""
    return None if text is None else text.encode("utf-8", "surrogateescape")


def _text(blob: bytes | None) -> str | None:
    return None if blob is None else blob.decode("utf-8", "surrogateescape")
