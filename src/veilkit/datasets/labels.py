"""Who is in a picture, which camera took it and when: read from its path or a list, never from the file.

A labeller maps a path relative to the dataset's root to (identity, camera); either may be None. A picture's own
metadata is not trusted.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TypeAlias, TypeVar

from veilkit.display import safe_cell
from veilkit.errors import ConfigError, DataError

T = TypeVar("T")
Labels: TypeAlias = tuple[str | None, str | None]
Labeller: TypeAlias = Callable[[str], Labels]

MARKET_FOLDERS = ("bounding_box_train", "query", "bounding_box_test")
_MARKET_NAME = re.compile(r"(?P<identity>-?\d+)_c(?P<camera>\d+)")
_CHOICES = "auto, none, folder, market, pattern:REGEX or csv:FILE"


def unlabelled(path: str) -> Labels:
    """Nothing is known of any picture."""
    return None, None


def by_folder(path: str) -> Labels:
    """The folder that holds the picture names the person; pictures at the top are unlabelled."""
    folder, _, _ = path.rpartition("/")
    return folder or None, None


def by_market_name(path: str) -> Labels:
    """Person and camera of a file name such as 0002_c1s1_000451_03.jpg.

    >>> by_market_name("query/0002_c1s1_000451_03.jpg")
    ('0002', '1')
    """
    found = _MARKET_NAME.match(path.rpartition("/")[2])
    return (found["identity"], found["camera"]) if found else (None, None)


def by_pattern(pattern: str) -> Labeller:
    """A labeller from a regular expression with a group named identity and, if wanted, one named camera."""
    compiled = _compiled(pattern, "identity", "label", ", and may have (?P<camera>...)")

    def label(path: str) -> Labels:
        found = compiled.search(path)
        if not found:
            return None, None
        groups = found.groupdict()
        return groups["identity"], groups.get("camera")

    return label


def by_csv(file: Path) -> Labeller:
    """A labeller from a CSV file with the columns path, identity and, if wanted, camera."""
    # What stands in another first line may be somebody's name: it is not repeated.
    table = _table(file, "identity", "label file", "a first line 'path,identity' or 'path,identity,camera'")
    rows = {path: (row["identity"] or None, row.get("camera") or None) for path, row in table.items()}
    return lambda path: _row(rows, path) or (None, None)


def time_reader(spec: str) -> Callable[[str], str | None]:
    """Maps a path to the time when the picture was taken as text (ISO 8601 or seconds since 1970), or None.

    spec: none, pattern:REGEX with a group (?P<time>...), or csv:FILE with the columns path and time.

    >>> time_reader("pattern:_t(?P<time>[0-9]+)")("cam1/a_t1714557600.jpg")
    '1714557600'
    """
    kind, _, argument = spec.partition(":")
    if spec == "none":
        return lambda path: None
    if kind == "csv" and argument:
        table = _table(Path(argument), "time", "list of times", "a first line with the columns path and time")
        times = {path: row["time"] or None for path, row in table.items()}
        return lambda path: _row(times, path)
    if kind == "pattern" and argument:
        compiled = _compiled(argument, "time", "time", "")
        return lambda path: found["time"] if (found := compiled.search(path)) else None
    raise ConfigError(f"times must be none, pattern:REGEX or csv:FILE, but got {spec!r}")


def _compiled(pattern: str, group: str, what: str, more: str) -> re.Pattern[str]:
    try:
        compiled = re.compile(pattern)
    except re.error as error:
        raise ConfigError(f"the {what} pattern is not a regular expression: {error}") from None
    if group not in compiled.groupindex:
        raise ConfigError(f"the {what} pattern needs a group (?P<{group}>...){more}")
    return compiled


def _table(file: Path, column: str, what: str, expected: str) -> dict[str, dict[str, str]]:
    """The rows of a CSV file by their path."""
    try:
        with file.open(newline="", encoding="utf-8-sig", errors="surrogateescape") as lines:
            reader = csv.DictReader(lines)
            if not {"path", column} <= set(reader.fieldnames or ()):
                raise DataError(f"expected {expected} in {file}")
            return {row["path"]: row for row in reader}
    except OSError as error:
        raise DataError(f"the {what} {file} cannot be read: {error.strerror}") from None
    except csv.Error as error:
        raise DataError(f"the {what} {file} is not CSV: {error}") from None


def _row(table: Mapping[str, T], path: str) -> T | None:
    return table.get(path) or table.get(safe_cell(path))  # also as our own lists write it


def is_market_layout(root: Path) -> bool:
    """Whether `root` has the three folders of the Market-1501 layout."""
    return all((root / folder).is_dir() for folder in MARKET_FOLDERS)


def labeller(spec: str, root: Path) -> Labeller:
    """The labeller that `spec` names, for pictures below `root`.

    auto takes Market names in the Market layout and folders elsewhere.
    """
    kind, _, argument = spec.partition(":")
    if kind == "auto":
        return by_market_name if is_market_layout(root) else by_folder
    if kind == "pattern" and argument:
        return by_pattern(argument)
    if kind == "csv" and argument:
        return by_csv(Path(argument))
    plain: dict[str, Labeller] = {"none": unlabelled, "folder": by_folder, "market": by_market_name}
    if spec not in plain:
        raise ConfigError(f"labels must be {_CHOICES}, but got {spec!r}")
    return plain[spec]
