"""Private SQLite files: opened, checked as a whole, and their errors in plain words.

A damaged file must be noticed before anything is concluded from it: an index that lost a row would make a sum too
small, and a sum that is too small is a budget that is overspent.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from veilkit.errors import DataError, DestinationError

_PAGE = 500  # keys asked for at once; SQLite allows 32,766 parameters at most
# Besides its own errors sqlite3 raises these, for text that is not UTF-8, even in its own messages, and absurd sizes.
_ERRORS = (sqlite3.Error, ValueError, OverflowError, MemoryError)


class Database:
    """One SQLite file. what: its name in messages. lost: what to do when it is damaged."""

    def __init__(self, file: Path, what: str, lost: str) -> None:
        self.file, self._what, self._lost = file, what, lost
        try:
            self._db = sqlite3.connect(file, isolation_level=None)
        except (sqlite3.Error, ValueError, OSError) as error:
            raise DestinationError(f"the {what} {file} cannot be opened: {error}") from None
        try:
            # `synchronous=FULL`, unlike in files that can be made again: a charge must survive a power cut as well.
            for pragma in ("journal_mode=WAL", "synchronous=FULL"):
                list(self.ask(f"PRAGMA {pragma}"))
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Release the file."""
        self._db.close()

    @property
    def empty(self) -> bool:
        """Whether it holds no table yet."""
        return not next(self.ask("SELECT COUNT(*) FROM sqlite_master"))[0]

    def check(self, objects: Mapping[str, str], wrong_rows: Sequence[str]) -> None:
        """Refuse a file that is damaged, holds other tables, or rows of wrong types.

        objects: name and kind of every table and index. wrong_rows: queries that count what must not be there.
        """
        found = dict(self.ask("SELECT name, type FROM sqlite_master WHERE name NOT LIKE 'sqlite_autoindex%'"))
        if found != dict(objects):
            raise self.damaged("it holds other tables")
        if (verdict := next(self.ask("PRAGMA integrity_check(1)"))[0]) != "ok":
            raise self.damaged(str(verdict).splitlines()[0])
        for query in wrong_rows:
            if count := next(self.ask(query))[0]:
                raise self.damaged(f"{count} of its rows are of no use")

    def ask(self, query: str, parameters: Sequence[Any] = ()) -> Iterator[tuple[Any, ...]]:
        """The rows that answer a query."""
        try:
            yield from self._db.execute(query, parameters)
        except _ERRORS as error:
            raise self._translated(error) from None

    def ask_each(self, query: str, keys: Sequence[str]) -> Iterator[tuple[Any, ...]]:
        """The rows that answer a query on some of many keys, whose place in the query is `{}`."""
        for start in range(0, len(keys), _PAGE):
            page = keys[start : start + _PAGE]
            yield from self.ask(query.format(", ".join("?" * len(page))), page)

    def run(self, statement: str, rows: Iterable[Sequence[Any]] | None = None) -> None:
        """Execute a statement, once for each of the rows of parameters if there are any."""
        try:
            if rows is None:
                self._db.execute(statement)
            else:
                self._db.executemany(statement, rows)
        except _ERRORS as error:
            raise self._translated(error) from None

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """All that is done inside is kept, or none of it."""
        self.run("BEGIN IMMEDIATE")
        try:
            yield
            self.run("COMMIT")
        except BaseException:
            if self._db.in_transaction:
                self.run("ROLLBACK")
            raise

    def damaged(self, why: str) -> DataError:
        """The error for a file that cannot be relied on."""
        return DataError(f"{self.file} is no {self._what}, or is damaged ({why}): {self._lost}")

    def _translated(self, error: Exception) -> DataError | DestinationError:
        text = str(error)
        code = getattr(error, "sqlite_errorcode", None)
        if code is not None and code & 0xFF in _OUTSIDE:
            return DestinationError(f"the {self._what} {self.file} cannot be written; nothing was changed: {text}")
        return self.damaged(text)


# What is wrong lies outside of the file: rights, space, another process.
_OUTSIDE = {
    sqlite3.SQLITE_PERM,
    sqlite3.SQLITE_BUSY,
    sqlite3.SQLITE_LOCKED,
    sqlite3.SQLITE_READONLY,
    sqlite3.SQLITE_IOERR,
    sqlite3.SQLITE_FULL,
    sqlite3.SQLITE_CANTOPEN,
}
