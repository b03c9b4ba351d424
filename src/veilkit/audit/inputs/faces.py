"""Faces as items of an audit: found in the originals, cut out of both sides alike; and pictures without them.

A face is cut as its judge is used to, upright, and seen through an oval, so that what stands beside it is told apart.
Its surroundings are the whole picture under a larger oval of their own mean colour; what lies between the two ovals
counts for neither.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal, TypeAlias, get_args

import cv2
import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from veilkit.audit.inputs.cache import Cache
from veilkit.audit.inputs.items import Item
from veilkit.audit.inputs.pictures import File
from veilkit.datasets.folder import load_folder
from veilkit.display import counted
from veilkit.errors import CheckpointError, DataError, MissingExtraError, RefusedImage
from veilkit.experts.alignment import WIDE, moved
from veilkit.experts.base import Detector, PointOrder
from veilkit.experts.finders import load_finder
from veilkit.media.reading import Limits, decode, read_bytes
from veilkit.progress import Progress

Seen: TypeAlias = Literal["pictures", "faces", "surroundings"]
"""What of each file is an item: all of it, the face, or everything else."""
SIDE = 150  # pixels of a cut face
_FINDERS = ("yunet", "dlib", "centerface")  # in the order of preference; first those that protect seldom
_SAMPLE = 24  # originals that tell what a folder shows
_MOST = 0.5  # of them must show a face
_LEAST = 24  # pixels: smaller faces say little to a recogniser
_LONGEST = 1280  # pixels a side at which faces are looked for
_MASK = 1_000_000  # pixels of a mask, about
_UPRIGHT, _SMALL = 1.6, 0.25  # a crop of a standing person is so much higher than wide, and its face so small
_MIDDLE = 0.5, 0.547  # of ovals in a wide crop, in shares of its side
FACE_OVAL, HEAD_OVAL = (0.352, 0.44), (0.48, 0.6)
"""Half axes of what counts as a face, and of what is hidden of it in its surroundings, in shares of a wide crop."""
_EYES = {"five": ([0], [1]), "dlib-5": ([0, 1], [2, 3]), "68": (list(range(36, 42)), list(range(42, 48)))}
_ORDERS: tuple[PointOrder, ...] = get_args(PointOrder)


@dataclass(frozen=True, slots=True)
class Face:
    """A face in pixels of a picture: left, top, right and bottom, and its points in their order."""

    box: tuple[float, float, float, float]
    points: tuple[tuple[float, float], ...]
    order: PointOrder

    def scaled(self, across: float, down: float) -> Face:
        """The same place in a picture of another size."""
        left, top, right, bottom = self.box
        points = tuple((x * across, y * down) for x, y in self.points)
        return replace(self, box=(left * across, top * down, right * across, bottom * down), points=points)

    @property
    def height(self) -> float:
        """In pixels."""
        return self.box[3] - self.box[1]

    @property
    def side(self) -> float:
        """The shorter side of its box."""
        return min(self.box[2] - self.box[0], self.height)

    @property
    def eyes_apart(self) -> float:
        """Distance between the eyes."""
        points, (one, other) = np.array(self.points), _EYES[self.order]
        return float(np.linalg.norm(points[one].mean(axis=0) - points[other].mean(axis=0)))

    def overlap(self, other: Face) -> float:
        """Intersection over union of the boxes."""
        one, two = np.array(self.box), np.array(other.box)
        sides = np.clip(np.minimum(one[2:], two[2:]) - np.maximum(one[:2], two[:2]), 0, None)
        areas = (one[2:] - one[:2]).prod() + (two[2:] - two[:2]).prod()
        return float(sides.prod() / max(areas - sides.prod(), 1e-9))

    def matrix(self) -> Tensor:
        """(1, 2, 3) from the picture to a wide crop of it."""
        return WIDE[self.order].matrix(torch.tensor([self.points]), SIDE)


@dataclass(frozen=True, slots=True)
class FacePart:
    """A face as a picture of its own, seen through an oval of these half axes."""

    face: Face
    oval: tuple[float, float] = FACE_OVAL

    def size(self, height: int, width: int) -> tuple[int, int]:
        """Height and width."""
        return SIDE, SIDE

    def cut(self, pixels: NDArray[np.uint8]) -> NDArray[np.uint8]:
        """HWC uint8 of the whole picture -> of the face, what stands beside it in the face's mean colour."""
        image = torch.from_numpy(pixels).permute(2, 0, 1)[None].float()
        crop = WIDE[self.face.order].align(image, torch.tensor([self.face.points]), SIDE)[0].permute(1, 2, 0).numpy()
        inside = _oval(_grid(SIDE, SIDE) / SIDE, self.oval)
        crop[~inside] = crop[inside].mean(axis=0)
        return np.asarray(crop.round().clip(0, 255), dtype=np.uint8)


@dataclass(frozen=True, slots=True)
class SurroundingsPart:
    """A whole picture without its faces, each under an oval of these half axes."""

    faces: tuple[Face, ...]
    oval: tuple[float, float] = HEAD_OVAL

    def size(self, height: int, width: int) -> tuple[int, int]:
        """Height and width."""
        return height, width

    def cut(self, pixels: NDArray[np.uint8]) -> NDArray[np.uint8]:
        """HWC uint8 of the whole picture -> the same with its faces in the mean colour of the rest."""
        height, width = pixels.shape[:2]
        step = max(1, round((height * width / _MASK) ** 0.5))  # ovals need not be finer, and large pictures are many
        rows, columns = -(-height // step), -(-width // step)
        places = torch.from_numpy(_grid(rows, columns) * (width / columns, height / rows)).float().flatten(0, 1)
        mask = np.zeros((rows, columns), dtype=np.uint8)
        for face in self.faces:
            mask |= _oval(moved(places[None], face.matrix())[0].numpy().reshape(rows, columns, 2) / SIDE, self.oval)
        hidden = cv2.resize(mask, (width, height), interpolation=cv2.INTER_NEAREST) > 0
        covered = pixels.copy()
        covered[hidden] = pixels[~hidden].mean(axis=0).round() if not hidden.all() else 0
        return covered


def _grid(height: int, width: int) -> NDArray[np.float64]:
    """(height, width, 2): x and y of the middle of each pixel."""
    x, y = np.meshgrid(np.arange(width) + 0.5, np.arange(height) + 0.5)
    return np.stack([x, y], axis=-1)


def _oval(shares: NDArray[np.float64], axes: tuple[float, float]) -> NDArray[np.bool_]:
    return np.asarray((((shares - _MIDDLE) / axes) ** 2).sum(axis=-1) <= 1)


def face_finder() -> Detector:
    """The first finder at hand; raises MissingExtraError with how to get one."""
    for name in _FINDERS:
        try:
            return load_finder(name)
        except (CheckpointError, MissingExtraError):
            continue
    raise MissingExtraError("a face finder", "faces")


def find_faces(
    root: Path, digests: Mapping[str, str], finder: Detector, limits: Limits, cache: Cache, what: str
) -> dict[str, tuple[Face, ...]]:
    """The faces of pictures (path to SHA-256), largest first; each content is looked through once."""
    kind = f"faces {finder.info.sha256}"
    known = cache.get(kind, list(digests.values()))
    missing = {digest: path for path, digest in digests.items() if digest not in known}
    with Progress(len(digests), f"looking for faces in {what}", done=len(digests) - len(missing)) as progress:
        for digest, path in missing.items():
            try:
                row = _row(faces_in(decode(read_bytes(root / path, limits), limits), finder))
            except RefusedImage as refusal:
                raise DataError(f"a picture changed during the audit: {refusal.reason}; run it again") from None
            cache.put(kind, [(digest, row)])
            known[digest] = row
            progress.advance()
    return {path: _of_row(known[digest]) for path, digest in digests.items()}


def shows_faces(originals: Path, finder: Detector, limits: Limits) -> bool:
    """Whether most of some originals show a face that is large enough to be known by, and are no crops of people."""
    paths = sorted(record.path for record in load_folder(originals, "none").records)
    chosen = [
        paths[place] for place in np.unique(np.linspace(0, len(paths) - 1, min(len(paths), _SAMPLE)).astype(int))
    ]
    shown = looked = 0
    for path in chosen:
        try:
            pixels = decode(read_bytes(originals / path, limits), limits)
        except RefusedImage:
            continue
        looked += 1
        height, width = pixels.shape[:2]
        if min(height, width) < _LEAST:
            continue
        faces = faces_in(pixels, finder)
        upright = height >= _UPRIGHT * width
        shown += bool(faces) and not (upright and faces[0].height < _SMALL * height)
    return looked > 0 and shown >= _MOST * looked


def choose_seen(originals: Path, limits: Limits, asked: str) -> tuple[Seen, str]:
    """What of an audit's pictures is judged, and a note where a reader must know why.

    asked: `faces`, `people`, or `auto` for what the originals show. Without a finder nobody can tell.
    """
    if asked != "auto":
        _ = face_finder() if asked == "faces" else None
        return ("faces" if asked == "faces" else "pictures"), ""
    if not _large_enough(originals, limits):
        return "pictures", ""
    try:
        finder = face_finder()
    except MissingExtraError as error:
        return (
            "pictures",
            f"whether the originals show faces is not known, so that whole pictures are judged: {error}",
        )
    return ("faces" if shows_faces(originals, finder, limits) else "pictures"), ""


def _large_enough(originals: Path, limits: Limits) -> bool:
    """Whether a picture in the middle of the folder could show a face at all."""
    paths = sorted(record.path for record in load_folder(originals, "none").records)
    try:
        pixels = decode(read_bytes(originals / paths[len(paths) // 2], limits), limits)
        return bool(min(pixels.shape[:2]) >= 2 * _LEAST)
    except (RefusedImage, IndexError):
        return False


def cut_faces(
    items: Sequence[Item],
    raw: Mapping[str, File],
    made: Mapping[str, File],
    found: Mapping[str, tuple[Face, ...]],
    seen: Seen,
) -> tuple[list[Item], tuple[list[File], list[File]], list[str]]:
    """Items for the faces of their originals, or for what surrounds them; then notes.

    Of a picture whose person is known the largest face is taken, of others all. Files were scanned whole. A protected
    picture of another size is taken to show everything at the same share of its sides.
    """
    kept, files, without = [], (list[File](), list[File]()), 0
    for item in items:
        assert item.original is not None
        faces = found[item.original]
        without += not faces
        one, other = raw[item.original], made[item.protected]
        across, down = other.width / one.width, other.height / one.height
        chosen: Iterable[tuple[Face, ...]] = [faces] if faces and seen == "surroundings" else [(f,) for f in faces]
        for group in list(chosen)[:1] if item.identity is not None else chosen:
            kept.append(item)
            scaled = tuple(face.scaled(across, down) for face in group)
            for side, file, places in ((files[0], one, group), (files[1], other, scaled)):
                side.append(file.of_part(SurroundingsPart(places) if seen == "surroundings" else FacePart(places[0])))
    if not kept:
        raise DataError("no face was found in any original: audit the pictures as they are (--kind people)")
    notes = []
    if seen == "faces":
        where = counted(len({item.original for item in kept}), "picture", "pictures")
        notes.append(f"judged by faces: {counted(len(kept), 'face', 'faces')} of {where}, found in the originals")
        if without:
            said = "original in which no face was found is", "originals in which no face was found are"
            notes.append(f"{counted(without, *said)} not judged: a face that nobody finds is not measured here")
    return kept, files, notes


def face_of(file: File) -> Face:
    """The face that a picture of `cut_faces` shows."""
    assert isinstance(file.part, FacePart)
    return file.part.face


def faces_in(pixels: NDArray[np.uint8], finder: Detector) -> list[Face]:
    """The faces of HWC uint8 pixels, largest first, those that are large enough."""
    scale = min(1.0, _LONGEST / max(pixels.shape[:2]))
    if scale < 1.0:
        size = max(1, round(pixels.shape[1] * scale)), max(1, round(pixels.shape[0] * scale))
        pixels = np.asarray(cv2.resize(pixels, size, interpolation=cv2.INTER_AREA), dtype=np.uint8)
    image = torch.from_numpy(pixels).permute(2, 0, 1)[None].float().div_(255)
    found = finder.detect(image)[0]
    faces = [
        Face((box[0], box[1], box[2], box[3]), tuple((x, y) for x, y in points), found.order).scaled(
            1 / scale, 1 / scale
        )
        for box, points in zip(found.boxes.tolist(), found.points.tolist(), strict=True)
    ]
    return sorted((face for face in faces if face.side >= _LEAST), key=lambda face: -face.side)


def _row(faces: Sequence[Face]) -> NDArray[np.float32]:
    """Faces as one vector: how many, the order of their points, then box and points of each."""
    values: list[float] = [len(faces), _ORDERS.index(faces[0].order) if faces else 0]
    for face in faces:
        values += [*face.box, *(value for point in face.points for value in point)]
    return np.array(values, dtype=np.float32)


def _of_row(row: NDArray[np.float32]) -> tuple[Face, ...]:
    count, order = int(row[0]), _ORDERS[int(row[1])]
    faces = []
    for values in row[2:].reshape(count, -1).tolist() if count else []:
        points = tuple(zip(values[4::2], values[5::2], strict=True))
        faces.append(Face((values[0], values[1], values[2], values[3]), points, order))
    return tuple(faces)
