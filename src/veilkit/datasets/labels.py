"""Who is in a picture and which camera took it, told from its path.

A labeller maps a path relative to the dataset's root to (identity, camera); either may be None.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Callable
from pathlib import Path
from typing import TypeAlias

from veilkit.csv_cells import safe_cell
from veilkit.errors import ConfigError, DataError

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
    try:
        compiled = re.compile(pattern)
    except re.error as error:
        raise ConfigError(f"the label pattern is not a regular expression: {error}") from None
    if "identity" not in compiled.groupindex:
        raise ConfigError("the label pattern needs a group (?P<identity>...), and may have (?P<camera>...)")

    def label(path: str) -> Labels:
        found = compiled.search(path)
        if not found:
            return None, None
        groups = found.groupdict()
        return groups["identity"], groups.get("camera")

    return label


def by_csv(file: Path) -> Labeller:
    """A labeller from a CSV file with the columns path, identity and, if wanted, camera."""
    try:
        with file.open(newline="", encoding="utf-8-sig", errors="surrogateescape") as lines:
            reader = csv.DictReader(lines)
            columns = set(reader.fieldnames or ())
            if not {"path", "identity"} <= columns:
                # What stands there instead may be somebody's name: it is not repeated.
                raise DataError(f"expected a first line 'path,identity' or 'path,identity,camera' in {file}")
            table = {row["path"]: (row["identity"] or None, row.get("camera") or None) for row in reader}
    except OSError as error:
        raise DataError(f"the label file {file} cannot be read: {error.strerror}") from None
    except csv.Error as error:
        raise DataError(f"the label file {file} is not CSV: {error}") from None
    return lambda path: table.get(path) or table.get(safe_cell(path), (None, None))  # also as our own lists write it


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
