"""When a picture was taken, told from its path or a list; never from the file, whose metadata is not trusted."""

from __future__ import annotations

import csv
import re
from collections.abc import Callable
from pathlib import Path

from veilkit.csv_cells import safe_cell
from veilkit.errors import ConfigError, DataError


def time_teller(spec: str) -> Callable[[str], str | None]:
    """Maps a path to a time as text (ISO 8601 or seconds since 1970), or None.

    spec: none, pattern:REGEX with a group (?P<time>...), or csv:FILE with the columns path and time.

    >>> time_teller("pattern:_t(?P<time>[0-9]+)")("cam1/a_t1714557600.jpg")
    '1714557600'
    """
    kind, _, argument = spec.partition(":")
    if spec == "none":
        return lambda path: None
    if kind == "csv" and argument:
        return _by_csv(Path(argument))
    if kind == "pattern" and argument:
        try:
            compiled = re.compile(argument)
        except re.error as error:
            raise ConfigError(f"the time pattern is not a regular expression: {error}") from None
        if "time" not in compiled.groupindex:
            raise ConfigError("the time pattern needs a group (?P<time>...)")
        return lambda path: found["time"] if (found := compiled.search(path)) else None
    raise ConfigError(f"times must be none, pattern:REGEX or csv:FILE, but got {spec!r}")


def _by_csv(file: Path) -> Callable[[str], str | None]:
    try:
        with file.open(newline="", encoding="utf-8-sig", errors="surrogateescape") as lines:
            reader = csv.DictReader(lines)
            if not {"path", "time"} <= set(reader.fieldnames or ()):
                raise DataError(f"expected a first line with the columns path and time in {file}")
            table = {row["path"]: row["time"] or None for row in reader}
    except OSError as error:
        raise DataError(f"the list of times {file} cannot be read: {error.strerror}") from None
    except csv.Error as error:
        raise DataError(f"the list of times {file} is not CSV: {error}") from None
    return lambda path: table.get(path) or table.get(safe_cell(path))  # also as our own lists write it
