"""Who plays which part in FRO's study: pictures held back, shares of a release, and copies in a folder per person."""

from __future__ import annotations

import shutil
from pathlib import Path

from torch import Tensor

from veilkit.datasets.folder import load_folder
from veilkit.types import Split


def chosen(split: Split, indices: list[int]) -> Split:
    """The pictures at these positions."""
    return Split(split.name, split.root, tuple(split.records[index] for index in indices))


def hold_back(split: Split, count: int) -> tuple[Split, Split]:
    """Training pictures, and `count` others of each person and camera, the last by path; one at least is kept."""
    seen: dict[tuple[str | None, str | None], list[int]] = {}
    for index, record in enumerate(split.records):
        seen.setdefault((record.identity, record.camera), []).append(index)
    back: set[int] = set()
    for members in seen.values():
        ordered = sorted(members, key=lambda index: split.records[index].path)
        back.update(ordered[max(1, len(ordered) - count) :] if count else [])
    kept = [index for index in range(len(split)) if index not in back]
    return chosen(split, kept), chosen(split, sorted(back))


def thinned(split: Split, targets: Tensor, share: float) -> tuple[Split, Tensor]:
    """A share of each person's pictures, rounded so that the whole fits; their names' order is a random one."""
    people: dict[str | None, list[int]] = {}
    for index, record in enumerate(split.records):
        people.setdefault(record.identity, []).append(index)
    kept: list[int] = []
    owed = 0.0
    for members in people.values():
        owed += share * len(members)
        kept += members[: round(owed) - len(kept)]
    return chosen(split, kept), targets[kept]


def copied_by_person(split: Split, folder: Path) -> Split:
    """The pictures in one folder per person, so that every method can be given just these people."""
    for index, record in enumerate(split.records):
        target = folder / str(record.identity) / Path(record.path).name
        if not target.exists():
            target.parent.mkdir(parents=True, exist_ok=True)
            draft = target.with_suffix(".draft")
            shutil.copyfile(split.file(index), draft)
            draft.replace(target)
    return load_folder(folder, "folder", split.name)
