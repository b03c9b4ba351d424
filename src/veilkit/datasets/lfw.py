"""Labeled Faces in the Wild: one folder per person, and the official list of pairs in folds of disjoint people."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path

from veilkit.datasets.folder import load_folder
from veilkit.errors import ConfigError, LayoutError
from veilkit.types import Split

TEST_FOLDS = (8, 9, 10)  # whose people nothing learns from, unless told otherwise
_PAIRS = "pairs.txt"


@dataclass(frozen=True, slots=True)
class Pair:
    """Two pictures (paths relative to the root), whether they show one person, and the fold, counted from 1."""

    first: str
    second: str
    same: bool
    fold: int


@dataclass(frozen=True, slots=True)
class Lfw:
    """All pictures, labelled by person, and the pairs of the official protocol."""

    images: Split
    pairs: tuple[Pair, ...]


def is_lfw(root: Path) -> bool:
    """Whether a folder has the official list of pairs."""
    return (root / _PAIRS).is_file()


def load_lfw(root: Path) -> Lfw:
    """Read the folders below `root` and its pairs.txt."""
    file = root / _PAIRS
    if not file.is_file():
        raise LayoutError(f"expected the official pairs.txt in {root}, but it is not there")
    pairs = parse_pairs(file.read_text(encoding="utf-8"))
    images = load_folder(root, "folder")
    known = {record.path for record in images.records}
    absent = sum(pair.first not in known or pair.second not in known for pair in pairs)
    if absent:
        raise LayoutError(f"{absent} of the {len(pairs)} pairs name pictures that are not below {root}")
    return Lfw(images, pairs)


def outside_folds(lfw: Lfw, folds: Collection[int], *, fewest: int = 1, shots: int | None = None) -> Split:
    """Pictures of everybody whom no pair of `folds` shows.

    fewest: people with less pictures are left out. shots: at most so many of one person, the first by name.
    """
    shown = {path for pair in lfw.pairs if pair.fold in folds for path in (pair.first, pair.second)}
    kept_out = {record.identity for record in lfw.images.records if record.path in shown}
    counts = Counter(record.identity for record in lfw.images.records)
    taken: Counter[str | None] = Counter()
    records = []
    for record in lfw.images.records:
        person = record.identity
        if person in kept_out or counts[person] < fewest or (shots is not None and taken[person] >= shots):
            continue
        taken[person] += 1
        records.append(record)
    return Split("train", lfw.images.root, tuple(records))


def parse_folds(text: str) -> tuple[int, ...]:
    """Numbers of folds.

    >>> parse_folds("8, 9,10")
    (8, 9, 10)
    """
    parts = [part.strip() for part in text.split(",") if part.strip()]
    if not all(part.isdigit() for part in parts):
        raise ConfigError(f"folds must be numbers separated by commas, like 8,9,10, but got {text!r}")
    return tuple(int(part) for part in parts)


def parse_pairs(text: str) -> tuple[Pair, ...]:
    """Read the text of pairs.txt: a line "folds per_fold", then per fold so many same and so many other pairs.

    >>> parse_pairs("1 1\\nA 1 2\\nA 3 B 1\\n")[1]
    Pair(first='A/A_0003.jpg', second='B/B_0001.jpg', same=False, fold=1)
    """
    lines = [line.split() for line in text.splitlines() if line.strip()]
    header = lines[0] if lines else []
    if len(header) not in (1, 2) or not all(part.isdigit() for part in header):
        raise LayoutError("expected the first line of pairs.txt to be the numbers of folds and of pairs per fold")
    folds, per_fold = (int(header[0]), int(header[1])) if len(header) == 2 else (1, int(header[0]))
    if len(lines) - 1 != folds * per_fold * 2:
        raise LayoutError(f"expected {folds * per_fold * 2} pairs in pairs.txt, but got {len(lines) - 1}")
    return tuple(_pair(parts, 1 + index // (2 * per_fold)) for index, parts in enumerate(lines[1:]))


def _pair(parts: list[str], fold: int) -> Pair:
    if len(parts) == 3:
        name, first, second = parts
        return Pair(_picture(name, first), _picture(name, second), True, fold)
    if len(parts) == 4:
        name, first, other, second = parts
        return Pair(_picture(name, first), _picture(other, second), False, fold)
    raise LayoutError(f"expected 3 or 4 words in a line of pairs.txt, but got {len(parts)}")


def _picture(name: str, number: str) -> str:
    return f"{name}/{name}_{int(number):04d}.jpg"
