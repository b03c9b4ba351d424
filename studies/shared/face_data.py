"""LFW for a small study: people to train on whom no test pair shows, test people, and the middle of each picture."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence
from io import BytesIO
from pathlib import Path

import torch
from PIL import Image
from torch import Tensor

from veilkit.datasets.folder import load_folder
from veilkit.datasets.lfw import Lfw, Pair
from veilkit.errors import DataError
from veilkit.media.writing import write_atomically
from veilkit.types import Record, Split


def pairs_of(lfw: Lfw, folds: Collection[int]) -> tuple[Pair, ...]:
    """The official pairs of some folds."""
    pairs = tuple(pair for pair in lfw.pairs if pair.fold in folds)
    if not pairs:
        raise DataError(f"expected pairs in the folds {sorted(folds)}, but pairs.txt has none there")
    return pairs


def split_people(lfw: Lfw, folds: Collection[int], *, people: int, fewest: int, shots: int) -> tuple[Split, Split]:
    """Pictures to train on and pictures of the test people: those of the pairs of `folds`, and nobody else.

    Training takes the `people` with the most pictures among all others, each with at least `fewest`. At most `shots`
    pictures of a person are taken, the first by name, so that none outweighs the others.
    """
    listed = {path for pair in pairs_of(lfw, folds) for path in (pair.first, pair.second)}
    tested = {str(record.identity) for record in lfw.images.records if record.path in listed}
    counts = Counter(str(record.identity) for record in lfw.images.records)
    others = sorted((name for name in counts if name not in tested), key=lambda name: (-counts[name], name))
    chosen = [name for name in others[:people] if counts[name] >= fewest]
    if len(chosen) < people:
        raise DataError(
            f"expected {people} people outside the test folds with at least {fewest} pictures, but got {len(chosen)}"
        )
    return _first_shots(lfw.images, chosen, shots, "train"), _first_shots(lfw.images, tested, shots, "test")


def _first_shots(split: Split, people: Collection[str], shots: int, name: str) -> Split:
    seen: Counter[str] = Counter()
    kept = []
    for record in split.records:
        person = str(record.identity)
        if person in people and seen[person] < shots:
            kept.append(record)
        seen[person] += 1
    return Split(name, split.root, tuple(kept))


def middle(image: Image.Image, side: int) -> Image.Image:
    """The square of `side` pixels in the middle."""
    left, top = (image.width - side) // 2, (image.height - side) // 2
    if left < 0 or top < 0:
        raise DataError(f"expected pictures of at least {side}x{side}, but got one of {image.height}x{image.width}")
    return image.crop((left, top, left + side, top + side))


def read_middles(root: Path, paths: Sequence[str], side: int, size: tuple[int, int]) -> Tensor:
    """uint8 (N, 3, height, width): the middle of each picture below `root`, resized bilinearly."""
    height, width = size
    pixels = torch.empty(len(paths), 3, height, width, dtype=torch.uint8)
    for index, path in enumerate(paths):
        with Image.open(root / path) as image:
            face = middle(image.convert("RGB"), side).resize((width, height), Image.Resampling.BILINEAR)
        plane = torch.frombuffer(bytearray(face.tobytes()), dtype=torch.uint8)
        pixels[index] = plane.view(height, width, 3).permute(2, 0, 1)
    return pixels


def write_middles(split: Split, folder: Path, side: int) -> Split:
    """The middle of each picture as PNG, in one folder per person; what is there already is kept.

    People and pictures are numbered, so that no name of a person gets into a pool or a release.
    """
    numbers = {person: f"{number:04}" for number, person in enumerate(split.identities)}
    folder.mkdir(parents=True, exist_ok=True)
    names = [f"{numbers[str(record.identity)]}/{place:05}.png" for place, record in enumerate(split.records)]
    for place, name in enumerate(names):
        if not (folder / name).exists():
            with Image.open(split.file(place)) as image:
                _write(middle(image.convert("RGB"), side), folder / name)
    written = load_folder(folder, "folder", split.name)
    if sorted(record.path for record in written.records) != sorted(names):
        raise DataError(f"{folder} holds pictures of another study: give this one its own folder")
    return written


def _write(image: Image.Image, target: Path) -> None:
    buffer = BytesIO()
    image.save(buffer, "PNG")
    write_atomically(target, buffer.getvalue(), target.parent.parent)


def same_class_pairs(
    made: Split, originals: Split, order: Sequence[int], draws: Sequence[float]
) -> tuple[Split, Split]:
    """Released pictures `order`, and beside each an original of the same person, chosen by a draw in [0, 1)."""
    by_person: dict[str, list[Record]] = {}
    for record in originals.records:
        by_person.setdefault(str(record.identity), []).append(record)
    ours = [made.records[index] for index in order]
    owned = [by_person[str(record.identity)] for record in ours]
    theirs = [choice[int(draw * len(choice))] for choice, draw in zip(owned, draws, strict=True)]
    return Split(made.name, made.root, tuple(ours)), Split(originals.name, originals.root, tuple(theirs))
