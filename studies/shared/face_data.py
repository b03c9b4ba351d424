"""LFW for a small study: people to train on whom no test pair shows, test people, and verification of these.

Verification is by the official protocol, in the test folds alone: the threshold of a fold is the one that does best
on the other test folds, so that it never saw a training person, nor the fold that it judges.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from PIL import Image
from torch import Tensor

from veilkit.datasets.folder import load_folder
from veilkit.datasets.lfw import Lfw, Pair
from veilkit.errors import DataError
from veilkit.media.writing import write_atomically
from veilkit.metrics import accuracy_by_fold, bootstrap_interval, equal_error_rate, tpr_at_fpr
from veilkit.networks.reid import ReidNetwork
from veilkit.rng import Randomness
from veilkit.training.retrieval import embed_pixels
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


RATES = (1e-2, 1e-3)  # false positive rates at which true ones are told


def verify(
    network: ReidNetwork,
    lfw: Lfw,
    tested: Split,
    *,
    folds: Collection[int],
    middle: int,
    size: tuple[int, int],
    seed: int,
) -> dict[str, Any]:
    """Accuracy on the official pairs of `folds`; EER and TPR over all pairs of the pictures of `tested`.

    Similarity is the cosine of features, each the mean of a face's and its mirror image's. The accuracy's interval
    draws people again, a pair with the person of its first picture; thresholds stay as they were chosen.
    """
    pairs = pairs_of(lfw, folds)
    persons = {record.path: str(record.identity) for record in lfw.images.records}
    numbers = {person: number for number, person in enumerate(sorted(set(persons.values())))}
    sides = [pair.first for pair in pairs], [pair.second for pair in pairs]
    chosen = [record.path for record in tested.records]
    paths = sorted({*sides[0], *sides[1], *chosen})
    place = {path: index for index, path in enumerate(paths)}
    pixels = read_middles(lfw.images.root, paths, middle, size)
    features = F.normalize(embed_pixels(network, pixels).double()).numpy()

    first, second = (features[[place[path] for path in side]] for side in sides)
    scores = (first * second).sum(1)
    same, fold = np.array([pair.same for pair in pairs]), np.array([pair.fold for pair in pairs])
    found = accuracy_by_fold(scores, same.astype(np.int64), fold)
    thresholds = found.thresholds[np.searchsorted(np.unique(fold), fold)]
    interval = bootstrap_interval(
        ((scores >= thresholds) == same).astype(np.float64),
        np.array([numbers[persons[path]] for path in sides[0]]),
        generator=Randomness.from_seed(seed).child("bootstrap").numpy(),
    )

    rows, people = features[[place[path] for path in chosen]], np.array([numbers[persons[path]] for path in chosen])
    above = np.triu_indices(len(rows), 1)
    similar, alike = (rows @ rows.T)[above], people[above[0]] == people[above[1]]
    genuine, impostor = similar[alike], similar[~alike]
    return {
        "accuracy": [interval.value, interval.low, interval.high],
        "by_fold": found.accuracies.tolist(),
        "eer": equal_error_rate(genuine, impostor),
        **{f"tpr@{rate:g}": tpr_at_fpr(genuine, impostor, rate) for rate in RATES},
        "pairs": len(pairs),
        "people": len(set(people.tolist())),
        "test_pictures": len(chosen),
        "genuine": len(genuine),
        "impostor": len(impostor),
    }
