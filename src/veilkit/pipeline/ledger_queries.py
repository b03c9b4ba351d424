"""What private ledgers say of a release, which are only read: who is who in it, and which pictures somebody names."""

from __future__ import annotations

import os
import re
import sqlite3
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass
from fnmatch import translate
from itertools import product
from pathlib import Path
from typing import Any

from veilkit.errors import UsageError
from veilkit.media.boxes import DrawnBox
from veilkit.pipeline.reports import read_report


def selected(
    only: Sequence[str], pictures: Mapping[str, str], private: Path, originals: Mapping[str, str] | None = None
) -> list[str]:
    """The pictures that `only` names, in the order of the release.

    pictures: those of the release, with their hashes. private: the folder of its ledger, which is read only where
    a name is none of the release: it may be an original's, or a pattern such as "patient 003/*", whose `*` stands for
    any characters, "/" included. originals: of each picture, where they are known already.
    """
    found = {name for name in only if name in pictures}
    if others := [name for name in only if name not in pictures]:
        originals = _originals(private, pictures) if originals is None else originals
        for name in others:
            fits = _matcher(name)
            of_name = {picture for picture in pictures if fits(picture)}
            of_name |= {picture for picture, original in (originals or {}).items() if fits(original)}
            if not of_name:
                raise _unknown(name, pictures, private, originals is not None)
            found |= of_name
    return [name for name in pictures if name in found]


def _matcher(name: str) -> Callable[[str], bool]:
    """Whether a path is the one named, or one of its pattern."""
    pattern = re.compile(translate(name))
    below = name.rstrip("/") + "/"  # a folder's name stands for all that it holds
    return lambda path: path == name or path.startswith(below) or pattern.match(path) is not None


def _unknown(name: str, pictures: Mapping[str, str], private: Path, has_ledger: bool) -> UsageError:
    about = (
        f"names are those of the originals, or those in its SHA256SUMS, such as {next(iter(pictures), None)!r}"
        if has_ledger
        else f"names are those in its SHA256SUMS, such as {next(iter(pictures), None)!r}; for those of the originals "
        f"its ledger is needed, and there is none in {private} (--key FILE takes the one beside that key)"
    )
    return UsageError(f"the release has no picture {name!r}: {about}")


def _originals(private: Path, pictures: Mapping[str, str]) -> dict[str, str] | None:
    """The original's path of each picture, from the ledger of just this release; None where there is no such."""
    rows = ledger_rows(private, pictures)
    return None if rows is None else {row.picture: row.original for row in rows}


@dataclass(frozen=True, slots=True)
class Row:
    """One picture of a release as its private ledger has it."""

    picture: str
    original: str
    person: str | None
    original_sha256: str | None
    report: Mapping[str, Any]

    @property
    def boxes(self) -> tuple[DrawnBox, ...]:
        """The regions of the original that were found or drawn, each with what is to happen there."""
        return tuple(
            DrawnBox(
                left, top, right - left, bottom - top, face.get("asked") or "protect", identity=face.get("identity")
            )
            for face in self.report.get("faces", ())
            if not face.get("frame")
            for left, top, right, bottom in [face["box"]]
            if right > left and bottom > top
        )


@dataclass(frozen=True, slots=True)
class Known:
    """A ledger that knows a release: its file, the facts of the run, and a row for each picture."""

    file: Path
    about: Mapping[str, str]
    rows: list[Row]


def ledger_rows(private: Path, pictures: Mapping[str, str]) -> list[Row] | None:
    """What the ledger of just this release says of its pictures, which is only read; None where there is no such."""
    known = known_release(private, pictures)
    return None if known is None else known.rows


def known_release(private: Path, pictures: Mapping[str, str]) -> Known | None:
    """The ledger of just this release, which is only read; None where there is no such."""
    for file, how in product(sorted(private.glob("*.ledger")), ("mode=ro", "immutable=1")):  # a folder on a DVD
        try:
            with closing(sqlite3.connect(f"{file.resolve().as_uri()}?{how}", uri=True)) as ledger:
                rows = list(_rows(ledger, pictures))
                ((count,),) = ledger.execute("SELECT COUNT(*) FROM pictures WHERE state = 'done'")
                about = dict(ledger.execute("SELECT name, value FROM about"))
        except (sqlite3.Error, OSError, ValueError):  # damaged, or no ledger: it may be another that is wanted
            continue
        if len(rows) == len(pictures) == count:  # a list that was shortened is none of this ledger's release
            return Known(file, about, rows)
    return None


def ledger_counts(folders: Sequence[Path]) -> dict[str, int] | None:
    """How many pictures were protected, refused or left to do, and how many of them hold something doubtful.

    Of the one ledger in the folders, which is only read; None where there is none, or several.
    """
    found = list(dict.fromkeys(file for folder in folders for file in sorted(folder.glob("*.ledger"))))
    if len(found) != 1:
        return None
    query = (
        "SELECT state, COUNT(*), SUM(coalesce(json_extract(report, '$.counts.doubtful'), 0) > 0) FROM pictures "
        "WHERE present = 1 GROUP BY state"
    )
    try:
        with closing(_opened(found[0])) as ledger:
            rows = ledger.execute(query).fetchall()
    except sqlite3.Error:
        return None
    counts = {str(state): int(count) for state, count, _ in rows}
    return {**dict.fromkeys(("done", "refused", "waiting"), 0), **counts,
            "doubtful": sum(int(doubtful or 0) for _, _, doubtful in rows)}  # fmt: skip


def _rows(ledger: sqlite3.Connection, pictures: Mapping[str, str]) -> Iterator[Row]:
    """The pictures that a ledger knows with the hash that they have here."""
    query = "SELECT output, source, identity, output_sha256, source_sha256, report FROM pictures WHERE state = 'done'"
    for output, source, person, digest, original_sha256, report in ledger.execute(query):
        if isinstance(output, bytes) and isinstance(source, bytes):
            picture = os.fsdecode(output)
            if picture in pictures and pictures[picture] == digest:
                who = os.fsdecode(person) if isinstance(person, bytes) else None
                yield Row(picture, os.fsdecode(source), who, original_sha256, read_report(report))


_QUERY = "SELECT source_sha256 FROM pictures WHERE output = ? AND output_sha256 = ? AND source_sha256 IS NOT NULL"


def remembered_sources(private: Path, released: Mapping[str, str]) -> dict[str, str]:
    """SHA-256 of the originals of released pictures, by their paths in the release.

    private: a folder with ledgers, which are only read. released: the hash of each released picture by its path; one
    that a ledger has under another hash is not known to it.
    """
    found: dict[str, str] = {}
    with suppress(OSError):
        for ledger in sorted(private.glob("*.ledger")):
            with suppress(sqlite3.DatabaseError), closing(_opened(ledger)) as database:
                for path, digest in released.items():
                    row = database.execute(_QUERY, (os.fsencode(path), digest)).fetchone()
                    if row is not None:
                        found.setdefault(path, str(row[0]))
    return found


def _opened(ledger: Path) -> sqlite3.Connection:
    """Immutable, so that no file is made beside it: it belongs to whoever protected the pictures."""
    return sqlite3.connect(f"{ledger.absolute().as_uri()}?immutable=1", uri=True)
