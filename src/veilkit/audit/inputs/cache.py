"""What has been computed of each file, kept on disk, so that an audit that was stopped goes on where it was."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Self

import numpy as np
from numpy.typing import NDArray

from veilkit.audit.private_files import FILE_MODE, private_file, private_folder
from veilkit.errors import DestinationError

_PAGE = 500  # subjects asked for at once; SQLite allows 32,766 parameters at most
_PATIENCE = 60.0  # seconds to wait for another process that writes
_SCHEMA = """
CREATE TABLE IF NOT EXISTS vectors (kind TEXT, subject TEXT, data BLOB NOT NULL, PRIMARY KEY (kind, subject))
WITHOUT ROWID;
"""


class Cache:
    """Float32 vectors by kind (an expert's fingerprint, a metric) and subject (the SHA-256 of a file, or of two).

    It holds features and hashes, never pixels or names; people can be recognised by features of originals, so folder
    and files are their owner's alone. SQLite, because it must survive a kill at any moment.
    """

    def __init__(self, file: Path) -> None:
        self._file = file

    def __enter__(self) -> Self:
        try:
            private_folder(self._file.parent)
            private_file(self._file)
            for part in ("-wal", "-shm"):  # SQLite gives new ones the mode of the file that they belong to
                with suppress(FileNotFoundError):
                    self._file.with_name(self._file.name + part).chmod(FILE_MODE)
            self._db = sqlite3.connect(self._file, isolation_level=None, timeout=_PATIENCE)
            self._db.execute("PRAGMA journal_mode=WAL")
            self._db.execute("PRAGMA synchronous=NORMAL")
            self._db.executescript(_SCHEMA)
        except (OSError, sqlite3.DatabaseError) as error:
            raise DestinationError(
                f"the cache {self._file.name} cannot be used ({error}): choose another --out, or delete its cache"
            ) from None
        return self

    def __exit__(self, *_: object) -> None:
        self._db.close()

    def get(self, kind: str, subjects: Sequence[str]) -> dict[str, NDArray[np.float32]]:
        """What is known of `subjects`; those that are missing have not been computed yet."""
        found: dict[str, NDArray[np.float32]] = {}
        for start in range(0, len(subjects), _PAGE):
            page = subjects[start : start + _PAGE]
            marks = ", ".join("?" * len(page))
            query = f"SELECT subject, data FROM vectors WHERE kind = ? AND subject IN ({marks})"  # noqa: S608
            try:
                rows = self._db.execute(query, (kind, *page)).fetchall()
                found.update((subject, np.frombuffer(data, dtype=np.float32)) for subject, data in rows)
            except (sqlite3.DatabaseError, ValueError, TypeError) as error:  # damaged since it was opened, or before
                raise DestinationError(
                    f"the cache {self._file} cannot be read ({error}): delete it and run the same command again"
                ) from None
        return found

    def put(self, kind: str, vectors: Iterable[tuple[str, NDArray[np.float32]]]) -> None:
        """Keep what was computed, all of it or nothing."""
        rows = [(kind, subject, np.asarray(vector, dtype="<f4").tobytes()) for subject, vector in vectors]
        try:
            self._db.execute("BEGIN")
            self._db.executemany("INSERT OR REPLACE INTO vectors VALUES (?, ?, ?)", rows)
            self._db.execute("COMMIT")
        except sqlite3.DatabaseError as error:
            raise DestinationError(f"the audit's cache cannot be written: {error}") from None
