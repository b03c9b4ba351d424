"""The pictures that something may learn from: the training part of a known layout, or the whole of any folder."""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path

from veilkit.datasets.folder import load_folder
from veilkit.datasets.labels import is_market_layout
from veilkit.datasets.lfw import TEST_FOLDS, is_lfw, load_lfw, outside_folds
from veilkit.datasets.market1501 import load_market1501
from veilkit.errors import DataError
from veilkit.types import Split


def load_training_part(
    root: Path, labels: str = "auto", people: int | None = None, folds: Collection[int] = TEST_FOLDS
) -> Split:
    """The labelled pictures to learn from; `people` keeps the first so many by name.

    folds: of LFW, whose people are for tests alone.
    """
    if labels in ("auto", "market") and is_market_layout(root):
        split = load_market1501(root).train
    elif labels == "auto" and is_lfw(root):
        split = outside_folds(load_lfw(root), folds)
    else:
        split = load_folder(root, labels)
    return split if people is None else first_people(split, people)


def first_people(split: Split, count: int) -> Split:
    """The pictures of the first `count` people by name."""
    known = split.identities
    if count > len(known):
        raise DataError(f"expected at least {count} people, but the {split.name!r} split has {len(known)}")
    kept = set(known[:count])
    return Split(split.name, split.root, tuple(record for record in split.records if record.identity in kept))
