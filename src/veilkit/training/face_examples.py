"""Faces to learn landmarks, gaze and expression from: generated ones, whose truth is known, and real ones."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TextIO

import numpy as np
import torch
from numpy.typing import NDArray
from PIL import Image
from torch import Tensor

from veilkit.datasets.folder import load_folder
from veilkit.errors import ConfigError, DataError, LayoutError
from veilkit.networks.face_attributes import HEADS, Head
from veilkit.synthetic.arrays import Floats
from veilkit.synthetic.faces.expression import EMOTIONS
from veilkit.synthetic.faces.generate import DESCRIPTION
from veilkit.synthetic.faces.truth import FaceTruth
from veilkit.training.faces import label_faces, load_training_faces
from veilkit.training.pixels import read_pixels
from veilkit.types import Record, Split

LABELS = tuple(EMOTIONS)


@dataclass(frozen=True, slots=True)
class GeneratedFaces:
    """F faces in the pictures of `split`; of portraits, face i is in picture i.

    picture: (F,) index into the split. people: who each face is. landmarks: (F, 68, 2), boxes: (F, 4) as left, top,
    right, bottom, in pixels from the picture's left top corner. camera_gaze: (F, 2) yaw and pitch. pose: (F, 3) yaw,
    pitch, roll, degrees. expression: (F,) index into LABELS.
    """

    split: Split
    picture: NDArray[np.int64]
    people: tuple[str, ...]
    landmarks: Floats
    boxes: Floats
    camera_gaze: Floats
    pose: Floats
    expression: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.people)


def load_generated_faces(root: Path) -> GeneratedFaces:
    """Read what `generate_faces` wrote to `root`."""
    try:
        described = json.loads((root / DESCRIPTION).read_bytes())
    except (OSError, ValueError):
        raise LayoutError(
            f"expected generated faces with their {DESCRIPTION} in {root}, but it is not there"
        ) from None
    if described.get("kind") != "generated faces":
        raise LayoutError(f"expected generated faces in {root}, but got {described.get('kind')}")
    if not described.get("complete"):
        raise LayoutError(f"the generated faces in {root} are unfinished: run the same command again")
    split = load_folder(root, "folder", "generated faces")
    if described["faces_per_picture"] > 1:
        split = Split(split.name, root, tuple(Record(record.path) for record in split.records))
    picture, people, truths = [], [], []
    for index in range(len(split)):
        file = split.file(index).with_suffix(".json")
        try:
            faces = json.loads(file.read_bytes())["faces"]
            truths += [FaceTruth.from_json(each) for each in faces]
        except (OSError, ValueError, KeyError):
            raise LayoutError(f"the truth of {split.records[index].path} is missing or damaged") from None
        people += [str(each["person"]) for each in faces]
        picture += [index] * len(faces)

    landmarks, boxes, gaze, pose = (
        np.array([getattr(truth, name) for truth in truths], np.float32)
        for name in ("landmarks", "box", "camera_gaze", "pose")
    )
    expression = np.array([LABELS.index(truth.expression) for truth in truths], np.int64)
    return GeneratedFaces(split, np.array(picture, np.int64), tuple(people), landmarks, boxes, gaze, pose, expression)


UNKNOWN = -1


@dataclass(frozen=True, slots=True, eq=False)
class FaceExamples:
    """N faces, one in each picture. pixels: uint8 (N, 3, S, S). landmarks: (N, 68, 2) in pixels of these.

    gaze: (N, 2) yaw and pitch before the camera in degrees, NaN where unknown. expression: (N,) class or UNKNOWN.
    taught: what each head learns from.
    """

    pixels: Tensor
    landmarks: Tensor
    gaze: Tensor
    expression: Tensor
    taught: dict[Head, str]

    def __len__(self) -> int:
        return len(self.pixels)

    def digest(self) -> str:
        """SHA-256 of all that is learned from."""
        whole = hashlib.sha256()
        for part in (self.pixels, self.landmarks, self.gaze, self.expression):
            whole.update(part.contiguous().numpy().tobytes())
        return whole.hexdigest()


def generated_examples(folder: Path, side: int) -> FaceExamples:
    """All portraits of a folder of generated faces, kept at side x side pixels."""
    faces = load_generated_faces(folder)
    if len(faces) != len(faces.split):
        raise DataError(f"expected one face per picture, but {folder} holds group photographs")
    height, width = _picture_size(faces.split)
    scale = torch.tensor([side / width, side / height])
    count = f"{len(faces)} generated faces"
    return FaceExamples(
        pixels=read_pixels(faces.split, (side, side)),
        landmarks=torch.from_numpy(faces.landmarks) * scale,
        gaze=torch.from_numpy(faces.camera_gaze),
        expression=torch.from_numpy(faces.expression),
        taught=dict.fromkeys(HEADS, count),
    )


def _picture_size(split: Split) -> tuple[int, int]:
    with Image.open(split.file(0)) as image:
        return image.height, image.width


def labelled_examples(split: Split, side: int, work_dir: Path, *, stream: TextIO | None = None) -> FaceExamples:
    """Pictures of real faces with the landmarks that dlib finds; pictures without a face are left out."""
    landmarks = label_faces(split, work_dir, stream=stream)
    seen = [place for place in range(len(split)) if not bool(landmarks[place].isnan().any())]
    if not seen:
        raise DataError(f"expected faces in the {split.name!r} split, but dlib finds none")
    kept = Split(split.name, split.root, tuple(split.records[place] for place in seen))
    count = len(seen)
    return FaceExamples(
        pixels=read_pixels(kept, (side, side)),
        landmarks=landmarks[seen] * side,
        gaze=torch.full((count, 2), torch.nan),
        expression=torch.full((count,), UNKNOWN),
        taught={"landmarks": f"{count} real faces by dlib's 68 landmarks", "gaze": "", "expression": ""},
    )


def load_examples(
    folders: Sequence[Path], side: int, work_dir: Path, *, folds: Collection[int], stream: TextIO | None = None
) -> FaceExamples:
    """Folders of generated faces, and of other faces, of LFW without the people of `folds`; see the two above."""
    parts = []
    for folder in folders:
        if (folder / DESCRIPTION).is_file():
            parts.append(generated_examples(folder, side))
        else:
            split = load_training_faces(folder, folds, fewest=1, shots=None)
            parts.append(labelled_examples(split, side, work_dir, stream=stream))
    return together(parts)


def together(parts: Sequence[FaceExamples]) -> FaceExamples:
    """All examples in a row."""
    if not parts:
        raise ConfigError("expected at least one folder of faces to learn from, but got none")
    pixels, landmarks, gaze, expression = (
        torch.cat([getattr(part, name) for part in parts]) for name in ("pixels", "landmarks", "gaze", "expression")
    )
    taught = {head: "; ".join(part.taught[head] for part in parts if part.taught[head]) for head in HEADS}
    return FaceExamples(pixels, landmarks, gaze, expression, taught)
