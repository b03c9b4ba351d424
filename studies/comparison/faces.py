"""Faces for the comparison of all methods: people of LFW's test folds, aligned, one numbered folder for each."""

from __future__ import annotations

import shutil
from collections import Counter
from collections.abc import Collection
from pathlib import Path

from studies.shared.face_data import pairs_of
from veilkit.datasets.lfw import Lfw
from veilkit.errors import DataError
from veilkit.experts.finders import load_finder
from veilkit.training.faces import align_faces
from veilkit.types import Split

_FEWEST = 2  # pictures of a person, to be found again


def chosen_faces(lfw: Lfw, folds: Collection[int], people: int, shots: int) -> Split:
    """The first `shots` pictures of the first `people` of these folds, by name, who have at least two."""
    listed = {path for pair in pairs_of(lfw, folds) for path in (pair.first, pair.second)}
    tested = {str(record.identity) for record in lfw.images.records if record.path in listed}
    counts = Counter(str(record.identity) for record in lfw.images.records)
    chosen = sorted(name for name in tested if counts[name] >= _FEWEST)[:people]
    if len(chosen) < people:
        raise DataError(
            f"expected {people} people of the folds {', '.join(map(str, folds))} with at least {_FEWEST} pictures, "
            f"but got {len(chosen)}: choose fewer with --set faces={len(chosen)}"
        )
    seen: Counter[str] = Counter()
    kept = []
    for record in lfw.images.records:
        person = str(record.identity)
        seen[person] += 1
        if person in chosen and seen[person] <= shots:
            kept.append(record)
    return Split("faces", lfw.images.root, tuple(kept))


def aligned_folder(split: Split, finder: str, side: int, work: Path, folder: Path) -> int:
    """Crops of the largest face of each picture in `folder`, people numbered; how many pictures had no face.

    What is there already is kept; pictures of another study are refused.
    """
    found = align_faces(split, load_finder(finder), side, work)
    numbers = {person: f"{number:04}" for number, person in enumerate(split.identities)}
    wanted = {f"{numbers[str(record.identity)]}/{record.path}": record.path for record in found.crops.records}
    folder.mkdir(parents=True, exist_ok=True)
    for leftover in folder.rglob("*.draft"):
        leftover.unlink()
    others = {file.relative_to(folder).as_posix() for file in folder.rglob("*.png")} - set(wanted)
    if others:
        raise DataError(
            f"{folder} holds {len(others)} faces that this study does not choose: give it a folder of its own"
        )
    for name, crop in wanted.items():
        target = folder / name
        if not target.exists():
            target.parent.mkdir(exist_ok=True)
            draft = target.with_name(f"{target.name}.draft")
            shutil.copyfile(work / crop, draft)
            draft.replace(target)
    return found.without
