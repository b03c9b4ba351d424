"""What a study can show: protected pictures by person, and the originals that they are to be compared with.

Which protected picture belongs to whom is found as in an audit: through the key, by paths or file names, or by the
class of a synthetic release.
"""

from __future__ import annotations

import base64
import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import cv2
import numpy as np
from numpy.typing import NDArray

from veilkit.datasets.folder import load_folder
from veilkit.datasets.labels import MARKET_FOLDERS, is_market_layout, labeller
from veilkit.datasets.market1501 import JUNK
from veilkit.errors import DataError, RefusedImage
from veilkit.media.reading import Limits, decode, read_bytes
from veilkit.media.writing import encode
from veilkit.pipeline.manifest import known_manifest
from veilkit.pipeline.pairing import choose_key, pair
from veilkit.pipeline.synthesis import class_name, is_synthetic

_SEARCHED = tuple(f"{folder}/" for folder in MARKET_FOLDERS[:2])
CONTROL = "originals"
LARGEST = 256  # of the longer side, in pixels; smaller pictures stay as they are
_GLANCE = (4, 8)  # width and height


@dataclass(frozen=True, slots=True)
class Picture:
    """A file with a person in it. own: the path of the original that it was made of, if of any."""

    root: Path
    path: str
    person: str
    camera: str | None = None
    own: str | None = None


@dataclass(frozen=True, slots=True)
class Condition:
    """One way in which people are shown: a protected folder, or the originals themselves as a control."""

    name: str
    method: str | None
    pictures: tuple[Picture, ...]
    control: bool = False


@dataclass(frozen=True, slots=True)
class Material:
    """Conditions, and all originals of the people in them. named: whether anything tells who is in an original."""

    conditions: tuple[Condition, ...]
    originals: tuple[Picture, ...]
    notes: tuple[str, ...]
    named: bool


def load_material(
    originals: Path, folders: Sequence[Path], *, keys: Sequence[Path | None], labels: str, control: bool
) -> Material:
    """Read names only; no picture is opened. keys: for each folder that of its release, or None to look for it."""
    known, named, notes = _originals(originals, labels)
    conditions = []
    for folder, key, name in zip(folders, keys, _names(folders), strict=True):
        condition, remarks = _condition(known, folder, key, labels, name)
        conditions.append(condition)
        notes += [f"{name}: {each}" for each in remarks]
    people = {picture.person for condition in conditions for picture in condition.pictures}
    shown = tuple(picture for picture in known if picture.person in people)
    if control:
        conditions.append(Condition(CONTROL, None, shown, control=True))
    return Material(tuple(conditions), shown, tuple(notes), named)


def _originals(root: Path, labels: str) -> tuple[list[Picture], bool, list[str]]:
    paths = [record.path for record in load_folder(root, "none").records]
    label = labeller(labels, root)
    labelled = [(path, *label(path)) for path in paths]
    if all(person is None for _, person, _ in labelled):
        note = "nothing tells who is in the originals (see --labels): each is taken for another person"
        return [Picture(root, path, path, own=path) for path in paths], False, [note]
    kept = [
        Picture(root, path, person, camera, path)
        for path, person, camera in labelled
        if person is not None and person != JUNK
    ]
    if labels in ("auto", "market") and is_market_layout(root):
        # Distractors of Market-1501 are many people under one name.
        searched = {picture.person for picture in kept if picture.path.startswith(_SEARCHED)}
        kept = [picture for picture in kept if picture.person in searched]
    lost = len(paths) - len(kept)
    return kept, True, [f"{lost} originals show nobody who is known and are left out"] if lost else []


def _condition(
    originals: list[Picture], folder: Path, key: Path | None, labels: str, name: str
) -> tuple[Condition, list[str]]:
    paths = [record.path for record in load_folder(folder, "none").records]
    manifest, manifest_notes = known_manifest(folder)
    secret, key_notes = choose_key(folder, manifest, key, None)
    people = {picture.person for picture in originals}
    if manifest is not None and is_synthetic(manifest):
        if secret is None and manifest.names == "pseudonyms":
            raise DataError(f"nobody can tell whom the classes of {folder.name} stand for: {'; '.join(key_notes)}")
        classes = {each if secret is None else class_name(each, secret, manifest.names): each for each in people}
        pictures = _by_person(folder, [(path, classes.get(path.rpartition("/")[0])) for path in paths])
        notes = (*key_notes, "synthetic pictures, compared with originals of the person of their class")
    elif (pairing := pair([picture.path for picture in originals], paths, secret, key_notes)).pairs:
        of = {picture.path: picture for picture in originals}
        pictures = [Picture(folder, made, of[path].person, of[path].camera, path) for path, made in pairing.pairs]
        notes = pairing.notes
    else:
        label = labeller(labels, folder)
        named = [(path, label(path)[0]) for path in paths]
        pictures = _by_person(folder, [(path, person if person in people else None) for path, person in named])
        notes = (*key_notes, "no pictures could be paired: who is in them is told by the labels of both folders")
    if not pictures:
        why = "; ".join(key_notes) or "no path, file name or person occurs in both folders"
        raise DataError(
            f"nothing in {folder.name} could be paired with the originals: {why}. Give the key of the release "
            "(--key), keep the paths or file names of the originals, or say who is in the pictures (--labels)"
        )
    return Condition(name, None if manifest is None else manifest.method, tuple(pictures)), [*manifest_notes, *notes]


def _by_person(folder: Path, named: list[tuple[str, str | None]]) -> list[Picture]:
    return [Picture(folder, path, person) for path, person in named if person is not None]


def _names(folders: Sequence[Path]) -> list[str]:
    """The folders' own names, made to differ, also from the control's."""
    taken = {CONTROL}
    names = []
    for folder in folders:
        plain = os.fsencode(folder.name).decode("utf-8", "replace")
        name, number = plain, 1
        while name in taken:
            number += 1
            name = f"{plain} ({number})"
        taken.add(name)
        names.append(name)
    return names


class Shelf:
    """Reads pictures safely when they are asked for, and encodes them anew: all in one size and format, no metadata.

    The shape of a protected picture is that of its original, and so would tell which one is right.
    """

    def __init__(self, limits: Limits | None = None) -> None:
        self._limits = limits or Limits()
        self._glances: dict[tuple[str, str], NDArray[np.float32] | None] = {}
        self._sizes: dict[tuple[str, str], tuple[int, int]] = {}

    def look(self, picture: Picture) -> NDArray[np.float32] | None:
        """A few colours of a picture, (8, 4, 3) in [0, 255]; None where it cannot be read."""
        place = (str(picture.root), picture.path)
        if place not in self._glances:
            try:
                pixels = self._pixels(picture)
            except RefusedImage:
                self._glances[place] = None
            else:
                self._sizes[place] = (pixels.shape[0], pixels.shape[1])
                self._glances[place] = _resized(pixels, _GLANCE).astype(np.float32)
        return self._glances[place]

    @property
    def refused(self) -> int:
        """How many of the pictures looked at could not be read."""
        return sum(glance is None for glance in self._glances.values())

    def size(self, pictures: Iterable[Picture]) -> tuple[int, int]:
        """Height and width for a page: the median of pictures that were looked at, of at most LARGEST."""
        sizes = np.array([self._sizes[str(each.root), each.path] for each in pictures])
        height, width = np.median(sizes, axis=0)
        scale = min(1.0, LARGEST / max(height, width))
        return max(1, round(height * scale)), max(1, round(width * scale))

    def address(self, picture: Picture, size: tuple[int, int]) -> str:
        """The picture at (height, width) as a data address of a PNG; its bytes follow from its pixels alone."""
        try:
            pixels = self._pixels(picture)
        except RefusedImage as refusal:
            raise DataError(f"a picture changed while the study was made: {refusal.reason}; try again") from None
        if pixels.shape[:2] != size:
            pixels = _resized(pixels, (size[1], size[0]))
        return "data:image/png;base64," + base64.b64encode(encode(pixels, "png")).decode()

    def _pixels(self, picture: Picture) -> NDArray[np.uint8]:
        return decode(read_bytes(picture.root / picture.path, self._limits), self._limits)


def _resized(pixels: NDArray[np.uint8], size: tuple[int, int]) -> NDArray[np.uint8]:
    """Stretched to (width, height), as recognisers do it: to cut would lose heads, to pad would show the shape."""
    smaller = size[0] * size[1] < pixels.shape[0] * pixels.shape[1]
    way = cv2.INTER_AREA if smaller else cv2.INTER_CUBIC
    return np.asarray(cv2.resize(np.ascontiguousarray(pixels), size, interpolation=way), dtype=np.uint8)
