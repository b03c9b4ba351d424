"""What private ledgers remember of a release: the hash of the original that each of its pictures was made of."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Mapping
from contextlib import closing, suppress
from pathlib import Path

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
