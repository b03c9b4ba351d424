"""A release whose pictures belong to no original: what is to be made, and the soft labels that go with it."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from veilkit.datasets.folder import Kind
from veilkit.datasets.labels import labeller
from veilkit.datasets.soft_labels import MOVES, SOFT_LABELS, SoftLabels, Views, views_logits
from veilkit.errors import DataError
from veilkit.key import Key
from veilkit.media.reading import Limits, decode, read_bytes, sha256
from veilkit.media.writing import write_atomically
from veilkit.methods import METHODS, Synthesiser
from veilkit.pipeline.job import Task
from veilkit.pipeline.ledger import Entry, Ledger
from veilkit.pipeline.manifest import SUMS, Manifest, read_listing
from veilkit.pipeline.names import RESERVED, Names
from veilkit.pipeline.places import Places
from veilkit.progress import Progress
from veilkit.rng import Randomness

_BATCH = 256


def count_people(places: Places, labels: str) -> tuple[Counter[str], int, int]:
    """Originals of each person; how many show nobody known, and how many files are no pictures."""
    label, counts, unknown, others = labeller(labels, places.source), Counter[str](), 0, 0
    for path, kind in places.survey():
        is_image = kind is Kind.picture
        identity = label(path)[0] if is_image else None
        if not is_image:
            others += 1
        elif identity is None:
            unknown += 1
        else:
            counts[identity] += 1
    return counts, unknown, others


def planned(
    method: Synthesiser[Any], counts: Counter[str], secret: Key, rng: Randomness, names: Names, suffix: str
) -> Iterator[Entry]:
    """An entry for each picture to be made, in a folder for each person."""
    for group, people in enumerate(method.plan(counts, rng=rng)):
        for position, person in enumerate(people):
            source = f"group {group}/{position}/{person}"
            folder = class_name(person, secret, names)
            yield Entry(source, f"{folder}/{secret.pseudonym(source)}{suffix}", person)


def class_name(person: str, secret: Key, names: Names) -> str:
    """The folder of a person's synthetic pictures."""
    if names == "pseudonyms":
        return secret.pseudonym(f"person {person}")
    if "/" in person or person in RESERVED or person.startswith("."):
        raise DataError("with kept names a person's name must do for a folder, but one does not: use pseudonyms")
    return person


def grouped_tasks(ledger: Ledger) -> Iterator[Task]:
    """The groups, whose pictures are made together."""
    groups: dict[int, list[tuple[int, Entry]]] = {}
    for entry in ledger.entries():
        group, position, _ = entry.source.removeprefix("group ").split("/", 2)
        groups.setdefault(int(group), []).append((int(position), entry))
    for _, members in sorted(groups.items()):
        yield Task(tuple(entry for _, entry in sorted(members, key=lambda each: each[0])))


def _kept_labels(made: Mapping[str, str], destination: Path, names: Names) -> str | None:
    """The SHA-256 of the labels that are there, if the release was finished with just these pictures and labels."""
    sums, labels = destination / SUMS, destination / SOFT_LABELS
    if not sums.is_file() or not labels.is_file():
        return None
    try:
        held = read_listing(destination, names)
    except DataError:  # altered: they are made again
        return None
    kept = held.pop(SOFT_LABELS, None)
    return kept if held == made and sha256(labels.read_bytes()) == kept else None


def write_soft_labels(
    method: Synthesiser[Any], ledger: Ledger, secret: Key, names: Names, destination: Path, scratch: Path
) -> tuple[str, str]:
    """Write the classifier's logits on the pictures as they were saved; returns the file's name and SHA-256.

    Where the release was finished before with just these pictures, its labels are kept.
    """
    made = {entry.output: entry.output_sha256 or "" for entry in ledger.entries("done", present=False)}
    if kept := _kept_labels(made, destination, names):
        return SOFT_LABELS, kept
    files = list(made)
    parts: list[NDArray[np.float32]] = []
    threads = torch.get_num_threads()
    torch.set_num_threads(1)  # the number of threads may change the last bits
    try:
        with torch.inference_mode(), Progress(len(files), "labelling") as progress:
            for start in range(0, len(files), _BATCH):
                part = files[start : start + _BATCH]
                pixels = np.stack([decode(read_bytes(destination / file, Limits()), Limits()) for file in part])
                images = torch.from_numpy(pixels).permute(0, 3, 1, 2).float().div(255)
                parts.append(views_logits(method.soft_labels, images))
                progress.advance(len(part))
    finally:
        torch.set_num_threads(threads)
    classes = tuple(class_name(person, secret, names) for person in method.classes)
    logits = np.concatenate(parts, axis=1) if parts else np.empty((len(MOVES), 0, len(classes)), np.float32)
    order = np.argsort(np.array(classes))  # the classifier's own order is that of the people's names
    data = SoftLabels(
        tuple(os.fsencode(file).decode("utf-8", "replace") for file in files),
        tuple(classes[index] for index in order),
        logits[0][:, order],  # the first view is the picture at rest
        Views(MOVES, logits[:, :, order]),
    ).encode()
    write_atomically(destination / SOFT_LABELS, data, scratch)
    return SOFT_LABELS, sha256(data)


def is_synthetic(manifest: Manifest | None) -> bool:
    """Whether the pictures of a release belong to no original, as its manifest's method says."""
    return manifest is not None and manifest.method in METHODS and issubclass(METHODS[manifest.method], Synthesiser)
