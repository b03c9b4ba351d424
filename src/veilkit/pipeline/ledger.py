"""The private ledger of a release: what became of every picture. It lies beside the key, never in the release.

SQLite, because it must survive a kill at any moment, be read in any order, and not grow in memory.
"""

from __future__ import annotations

import csv
import fcntl
import json
import os
import re
import sqlite3
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Literal, Self, TypeAlias, get_args

from veilkit.display import safe_cell
from veilkit.errors import DestinationError
from veilkit.media.boxes import Boxes, DrawnBox
from veilkit.media.video import VIDEO_SUFFIX
from veilkit.pipeline.names import Names, name_fault
from veilkit.pipeline.reports import read_report
from veilkit.secret_file import check_private

State: TypeAlias = Literal["waiting", "done", "refused"]
_HASH = re.compile("[0-9a-f]{64}")
_FACES = ("found", "changed", "hidden", "doubtful", "spared")  # what methods on faces count in each picture
_PAGE = 256  # rows held in memory at once
NEVER_WRITTEN = ".refused"
"""Suffix, in the ledger alone, of what is noted only to be refused, so that it takes no picture's name."""
_REFUSED = re.compile(r"[a-z2-7]{26}\.refused")

_SCHEMA = """
CREATE TABLE IF NOT EXISTS about (name TEXT PRIMARY KEY, value TEXT NOT NULL);
CREATE TABLE IF NOT EXISTS pictures (
    output BLOB PRIMARY KEY,
    source BLOB NOT NULL UNIQUE,
    identity BLOB,
    camera BLOB,
    present INTEGER NOT NULL DEFAULT 1,
    state TEXT NOT NULL DEFAULT 'waiting',
    recipe TEXT,
    source_sha256 TEXT,
    output_sha256 TEXT,
    reason TEXT,
    report TEXT,
    sealed_sha256 TEXT
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS boxes (source BLOB PRIMARY KEY, drawn TEXT NOT NULL) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS withdrawn (tag TEXT PRIMARY KEY, time TEXT NOT NULL) WITHOUT ROWID;
"""


@dataclass(frozen=True, slots=True)
class Entry:
    """One picture: paths relative to the source and the release; hashes and reason once it has been dealt with.

    report: what the method says of how this picture was made, as JSON, where it says anything.
    sealed_sha256: hash of its sealed original, where originals are sealed.
    """

    source: str
    output: str
    identity: str | None = None
    camera: str | None = None
    state: State = "waiting"
    recipe: str | None = None
    source_sha256: str | None = None
    output_sha256: str | None = None
    reason: str | None = None
    report: str | None = None
    sealed_sha256: str | None = None


_RESULT = "state, recipe, source_sha256, output_sha256, reason, report, sealed_sha256"
_COLUMNS = f"source, output, identity, camera, {_RESULT}"


class Ledger:
    """The ledger file of one release; one run at a time may hold it open."""

    def __init__(self, file: Path) -> None:
        self.file = file

    def __enter__(self) -> Self:
        try:
            self.file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            # A link could lead among the pictures.
            self._lock = os.open(self.file, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
        except OSError as error:
            raise DestinationError(f"the ledger {self.file} cannot be written: {error.strerror}") from None
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(self._lock)
            raise DestinationError("another run is writing this release: wait for it, or stop it first") from None
        except OSError as error:
            os.close(self._lock)
            raise DestinationError(f"the ledger {self.file} cannot be locked: {error.strerror}") from None
        self._db = sqlite3.connect(self.file, isolation_level=None)
        self._db.text_factory = os.fsdecode  # what is no text is found out by `_fault`
        try:
            self._db.execute("PRAGMA journal_mode=WAL")
            self._db.execute("PRAGMA synchronous=NORMAL")
            self._db.executescript(_SCHEMA)
            self._add_columns()
        except sqlite3.DatabaseError:
            self._close()
            raise DestinationError(f"{self.file} is no ledger, or is damaged: move it away to begin anew") from None
        try:
            check_private(self.file, os.fstat(self._lock))
        except BaseException:
            self._close()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._close()

    def _add_columns(self) -> None:
        """Give a ledger of an earlier version the columns that it lacks."""
        held = {row[1] for row in self._db.execute("PRAGMA table_info(pictures)")}
        for column in ("report", "sealed_sha256"):
            if column not in held:
                self._db.execute(f"ALTER TABLE pictures ADD COLUMN {column} TEXT")

    def _close(self) -> None:
        self._db.close()
        os.close(self._lock)

    def about(self) -> dict[str, str]:
        """What the release is: method, configuration, source."""
        return dict(self._db.execute("SELECT name, value FROM about"))

    def describe(self, **facts: str) -> None:
        """Note what the release is."""
        self._db.execute("BEGIN")
        self._db.executemany("INSERT OR REPLACE INTO about VALUES (?, ?)", facts.items())
        self._db.execute("COMMIT")

    def clear(self) -> None:
        """Forget everything: another release begins."""
        self._db.executescript("DELETE FROM pictures; DELETE FROM about; DELETE FROM boxes; DELETE FROM withdrawn;")

    def keep_boxes(self, boxes: Boxes) -> None:
        """Note boxes that somebody drew, in place of older ones of the same pictures."""
        rows = ((os.fsencode(path), json.dumps([asdict(box) for box in drawn])) for path, drawn in boxes.items())
        self._db.execute("BEGIN")
        self._db.executemany("INSERT OR REPLACE INTO boxes VALUES (?, ?)", rows)
        self._db.execute("COMMIT")

    def boxes(self) -> dict[str, tuple[DrawnBox, ...]]:
        """All boxes that were drawn for this release."""
        rows = self._db.execute("SELECT source, drawn FROM boxes ORDER BY source")
        try:
            return {os.fsdecode(path): tuple(DrawnBox(**each) for each in json.loads(drawn)) for path, drawn in rows}
        except (TypeError, ValueError, RecursionError):
            raise self._altered("a box in it is none") from None

    def withdraw(self, outputs: Sequence[str], tags: Sequence[tuple[str, str]]) -> None:
        """Forget pictures for good, and note by a tag and the time that they are not to come back."""
        self._db.execute("PRAGMA secure_delete = ON")
        names = [(os.fsencode(output),) for output in outputs]
        self._db.execute("BEGIN")
        self._db.executemany("INSERT OR REPLACE INTO withdrawn VALUES (?, ?)", tags)
        self._db.executemany(
            "DELETE FROM boxes WHERE source IN (SELECT source FROM pictures WHERE output = ?)", names
        )
        self._db.executemany("DELETE FROM pictures WHERE output = ?", names)
        self._db.execute("COMMIT")
        self._db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        self._db.execute("VACUUM")

    def withdrawn(self) -> dict[str, str]:
        """The tags of pictures that are not to come back, and when each was withdrawn."""
        return dict(self._db.execute("SELECT tag, time FROM withdrawn"))

    def forget_seals(self) -> None:
        """Forget which originals were sealed: all are to be sealed anew."""
        self._db.execute("UPDATE pictures SET sealed_sha256 = NULL")

    def enrol(self, entries: Iterator[Entry]) -> None:
        """Note the pictures now in the source. Known ones keep what is known of them; others are marked as gone."""
        rows = ((os.fsencode(e.output), os.fsencode(e.source), _blob(e.identity), _blob(e.camera)) for e in entries)
        self._db.execute("BEGIN")
        try:
            # What was no picture may be one by now, and then needs the name of one.
            held = (len(NEVER_WRITTEN), NEVER_WRITTEN.encode())
            self._db.execute("DELETE FROM pictures WHERE substr(output, -?) = ?", held)
            self._db.execute("UPDATE pictures SET present = 0")
            self._db.executemany(
                "INSERT INTO pictures (output, source, identity, camera) VALUES (?, ?, ?, ?) ON CONFLICT (source) "
                "DO UPDATE SET present = 1, identity = excluded.identity, camera = excluded.camera",
                rows,
            )
        except BaseException as error:
            self._db.execute("ROLLBACK")
            if isinstance(error, sqlite3.IntegrityError):
                raise DestinationError(
                    "a new picture would get the name of one that the release holds and the source no longer does: "
                    "choose a new folder, or names that are pseudonyms"
                ) from None
            raise
        self._db.execute("COMMIT")

    def record(self, entries: Sequence[Entry]) -> int:
        """Note what became of some pictures, all or none of them; returns for how many that is news."""
        rows = [
            (e.state, e.recipe, e.source_sha256, e.output_sha256, e.reason, e.report, e.sealed_sha256)
            for e in entries
        ]
        self._db.execute("BEGIN")
        changed = self._db.executemany(
            f"UPDATE pictures SET ({_RESULT}) = (?, ?, ?, ?, ?, ?, ?) "  # noqa: S608
            f"WHERE source = ? AND ({_RESULT}) IS NOT (?, ?, ?, ?, ?, ?, ?)",
            ((*row, os.fsencode(entry.source), *row) for row, entry in zip(rows, entries, strict=True)),
        )
        self._db.execute("COMMIT")
        return changed.rowcount

    def entries(self, state: State | None = None, *, present: bool = True) -> Iterator[Entry]:
        """The pictures in the order of their names in the release, a page at a time."""
        after, names = "", self._names()
        last: tuple[Any, ...] = ()
        while True:
            rows = self._db.execute(
                f"SELECT {_COLUMNS} FROM pictures WHERE present >= ? AND (? IS NULL OR state = ?) {after}"  # noqa: S608
                f"ORDER BY output LIMIT {_PAGE}",
                (int(present), state, state, *last),
            ).fetchall()
            for row in rows:
                # Not on the first page: an altered name may come before any that could be given here.
                after, last = "AND output > ? ", (row[1],)
                yield self._entry(row, names)
            if len(rows) < _PAGE:
                return

    def _names(self) -> Names:
        noted = self.about().get("names")
        return "pseudonyms" if noted == "pseudonyms" else "folders" if noted == "folders" else "kept"

    def _entry(self, row: tuple[Any, ...], names: Names) -> Entry:
        """A row as an entry; whoever altered the file must not choose where pictures are written."""
        if all(part is None or isinstance(part, bytes | str) for part in row):
            entry = Entry(*(None if part is None else os.fsdecode(part) for part in row))  # type: ignore[arg-type]
            if (fault := _fault(entry, names)) is None:
                return entry
        else:
            fault = "a value in it is not text"
        raise self._altered(fault)

    def _altered(self, fault: str) -> DestinationError:
        return DestinationError(
            f"the ledger {self.file} was altered by somebody: {fault}. Restore it from a copy, or begin anew with "
            "another key and an empty folder"
        )

    def state(self, output: str) -> State | None:
        """What became of the picture of that name in the release; None for names that the ledger does not know."""
        row = self._db.execute("SELECT state FROM pictures WHERE output = ?", (os.fsencode(output),)).fetchone()
        return None if row is None else row[0]

    def count(self, state: State | None = None, *, present: bool = True) -> int:
        """How many pictures there are (in that state)."""
        query = "SELECT COUNT(*) FROM pictures WHERE present >= ? AND (? IS NULL OR state = ?)"
        return int(self._db.execute(query, (int(present), state, state)).fetchone()[0])

    def videos(self) -> int:
        """How many of the protected pictures are videos."""
        suffix = VIDEO_SUFFIX.encode()
        query = "SELECT COUNT(*) FROM pictures WHERE state = 'done' AND substr(output, -?) = ?"
        return int(self._db.execute(query, (len(suffix), suffix)).fetchone()[0])

    def gone(self) -> int:
        """How many protected pictures are no longer in the source."""
        query = "SELECT COUNT(*) FROM pictures WHERE present = 0 AND state = 'done'"
        return int(self._db.execute(query).fetchone()[0])

    def missed(self) -> int:
        """How many protected pictures missed the limit that their method sets itself, as their reports say."""
        held = "json_extract(report, '$.held')"
        query = f"SELECT COUNT(*) FROM pictures WHERE present = 1 AND state = 'done' AND {held} = 0"  # noqa: S608
        return int(self._db.execute(query).fetchone()[0])

    def told(self) -> dict[str, int]:
        """What methods report of pictures that their owner must know, and of how many; the most frequent first."""
        query = (
            "SELECT value, COUNT(*) FROM pictures, json_each(report, '$.told') "
            "WHERE present = 1 AND state = 'done' GROUP BY value ORDER BY 2 DESC, 1"
        )
        return {str(text): int(count) for text, count in self._db.execute(query)}

    def faces(self) -> dict[str, int]:
        """How many faces a method on faces found, changed and hid, and how many doubtful regions; else empty."""
        query = (
            "SELECT key, SUM(value) FROM pictures, json_each(report, '$.counts') "
            "WHERE present = 1 AND state = 'done' GROUP BY key ORDER BY key"
        )
        return {str(name): int(count) for name, count in self._db.execute(query)}

    def write_faces(self, file: Path) -> None:
        """List how many faces were found in each picture, and what became of them, as CSV, for their owner."""
        counts = ", ".join(f"coalesce(json_extract(report, '$.counts.{name}'), 0)" for name in _FACES)
        query = (
            f"SELECT source, {counts} FROM pictures WHERE present = 1 AND state = 'done' "  # noqa: S608
            "AND json_extract(report, '$.counts') IS NOT NULL ORDER BY source"
        )
        _write_table(
            file,
            ("source", *_FACES),
            ((os.fsdecode(source), *map(str, numbers)) for source, *numbers in self._db.execute(query)),
        )

    def write_told(self, file: Path) -> None:
        """List the pictures of which something is told, as CSV, for their owner."""
        query = (
            "SELECT source, value FROM pictures, json_each(report, '$.told') "
            "WHERE present = 1 AND state = 'done' ORDER BY source, value"
        )
        _write_table(
            file, ("source", "told"), ((os.fsdecode(source), text) for source, text in self._db.execute(query))
        )

    def refusals(self) -> Iterator[tuple[str, str]]:
        """The pictures that could not be protected as they are now, and why."""
        query = "SELECT source, reason FROM pictures WHERE present = 1 AND reason IS NOT NULL ORDER BY source"
        for source, reason in self._db.execute(query):
            yield os.fsdecode(source), reason

    def write_refusals(self, file: Path) -> None:
        """List the refused pictures and the reasons as CSV, for their owner."""
        _write_table(file, ("source", "reason"), self.refusals())


def _write_table(file: Path, head: Sequence[str], rows: Iterator[Sequence[str]]) -> None:
    """A CSV file that only its owner can read. No cell of it is a formula to a spreadsheet: see `safe_cell`."""
    file.unlink(missing_ok=True)  # its rights may be others, and a link must not be followed
    descriptor = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    with os.fdopen(descriptor, "w", newline="", encoding="utf-8", errors="surrogateescape") as out:
        writer = csv.writer(out)
        writer.writerow(head)
        writer.writerows([safe_cell(text) for text in row] for row in rows)


def _fault(entry: Entry, names: Names) -> str | None:
    """What no run has written; None where nothing is."""
    if entry.output.endswith(NEVER_WRITTEN):
        if not _REFUSED.fullmatch(entry.output) or entry.state == "done":
            return "a file that is never written has another name in it, or was written"
    elif fault := name_fault(entry.output, names):
        return f"a picture's name in it {fault}"
    if entry.state not in get_args(State):
        return "a picture's state in it is none"
    hashes = (entry.source_sha256, entry.output_sha256, entry.sealed_sha256)
    if any(value is not None and not _HASH.fullmatch(value) for value in hashes):
        return "a hash in it is none"
    if entry.state == "done" and entry.output_sha256 is None:
        return "a finished picture in it has no hash"
    try:
        read_report(entry.report)
        f"{entry.recipe}{entry.reason}{entry.report}".encode()
    except ValueError as error:
        return "a text in it is none" if isinstance(error, UnicodeError) else f"a report in it is none: {error}"
    return None


def _blob(text: str | None) -> bytes | None:
    """Text that may come from a path, whose bytes need not be UTF-8; SQLite's own text must be."""
    return None if text is None else os.fsencode(text)
