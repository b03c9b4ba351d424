"""The owner's side of a gallery: key, ledger and catalogue, apart from what everybody may search."""

from __future__ import annotations

import base64
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from veilkit.errors import DataError, DestinationError, KeyFileError
from veilkit.gallery.facts import FACTS, Facts
from veilkit.key import Key, read_key
from veilkit.privacy import Ledger
from veilkit.privacy.database import Database
from veilkit.rng import Randomness


def key_beside(folder: Path) -> Path:
    """Where a gallery's key lies unless told otherwise."""
    return folder.with_name(folder.name + ".private") / "key"


def gallery_secret(key: Key, gallery: str) -> Randomness:
    """The secret of one gallery: pseudonyms of two galleries under one key have nothing in common."""
    return key.randomness.child("gallery", gallery)


def private_file(key_file: Path, gallery: str, kind: str) -> Path:
    """The file of one kind beside the key; one key may serve many galleries."""
    return key_file.with_name(f"gallery-{gallery[:12]}.{kind}")


class Private:
    """Key, ledger and catalogue of one gallery, opened on creation; one process at a time may hold them."""

    def __init__(self, key_file: Path, facts: Facts, *, renew: bool = False) -> None:
        """renew: whether a lost catalogue may be begun anew, by what fills it again."""
        self._secret = gallery_secret(read_key(key_file), facts.gallery)
        if self._secret.tag("commitment").hex() != facts.key_commitment:
            raise KeyFileError(f"{key_file} is not the key of this gallery: name the one it was made with")
        books = private_file(key_file, facts.gallery, "ledger")
        if not books.is_file() or not books.stat().st_size:
            raise DataError(
                f"the gallery's ledger {books} is missing or empty: restore it from a copy, since without it nobody "
                "knows what has been spent"
            )
        self.ledger = Ledger(books).__enter__()
        try:
            self._check_promise(facts)
            new = renew or not len(self.ledger)
            self.catalogue = Catalogue(private_file(key_file, facts.gallery, "catalogue"), new=new)
        except BaseException:
            self.ledger.__exit__()
            raise

    def _check_promise(self, facts: Facts) -> None:
        """Refuse a ledger of another budget or mechanism than gallery.json states."""
        same = (self.ledger.budget, self.ledger.per) == (facts.budget, facts.per)
        if not same or not self.ledger.only(facts.make_mechanism()):
            raise DataError(
                f"the ledger {self.ledger.file} was kept under another budget or mechanism than {FACTS} states: one "
                "of the two was altered; restore it from a copy"
            )

    def close(self) -> None:
        """Give the files back."""
        self.catalogue.close()
        self.ledger.__exit__()

    def pseudonym(self, record: str) -> str:
        """The name of a record for everybody else: 26 letters and digits."""
        return _name(self._secret.tag("record", record))

    def person(self, person: str) -> str:
        """The name of a person in the ledger; it is never stored with the vectors."""
        return _name(self._secret.tag("person", person))

    def content(self, data: bytes) -> bytes:
        """A keyed hash of what stands behind a record."""
        return self._secret.tag("content", data)

    def released(self) -> list[str]:
        """The pseudonyms of all that was paid for and not withdrawn, in their order."""
        gone = self.catalogue.withdrawn()
        return [name for name in dict.fromkeys(entry.record for entry in self.ledger.entries()) if name not in gone]

    def refuse_unnamed(self, pseudonyms: Sequence[str]) -> None:
        """Raise DataError where some are paid for and missing in the catalogue: who can tell what they were?"""
        if count := len(self.ledger.owners(self.catalogue.unknown(pseudonyms))):
            raise DataError(
                f"{count} of these records are paid for, but missing in the gallery's private list, which is most "
                "likely an older copy. Restore the latest; without one, `veilkit gallery reconcile GALLERY SOURCE` "
                "enters them again, SOURCE being what was added since that copy"
            )

    def names(self, pseudonyms: Sequence[str]) -> dict[str, str]:
        """The records behind those of `pseudonyms` that are known."""
        return {pseudonym: entry.record for pseudonym, entry in self.catalogue.get(pseudonyms).items()}


def pages(items: Sequence[str], size: int) -> Iterator[Sequence[str]]:
    """`items`, so many at a time."""
    for start in range(0, len(items), size):
        yield items[start : start + size]


def _name(tag: bytes) -> str:
    return base64.b32encode(tag[:16]).decode().rstrip("=").lower()


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

    def withdraw(self, pseudonyms: Sequence[str]) -> None:
        """Forget what stands behind pseudonyms, but for the fact that there was something."""
        self._db.run("PRAGMA secure_delete = ON")
        with self._db.transaction():
            rows = ((name, b"", None, None, None, b"") for name in pseudonyms)
            self._db.run("INSERT OR REPLACE INTO records VALUES (?, ?, ?, ?, ?, ?)", rows)

    def withdrawn(self) -> set[str]:
        """The pseudonyms of what was withdrawn."""
        return {name for (name,) in self._db.ask("SELECT pseudonym FROM records WHERE length(record) = 0")}

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
