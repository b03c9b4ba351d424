"""Faces to learn landmarks, gaze and expression from: generated ones, whose truth is known, and real ones."""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TextIO

import torch
from PIL import Image
from torch import Tensor

from veilkit.errors import ConfigError, DataError
from veilkit.networks.face_attributes import HEADS, Head
from veilkit.synthetic.faces.generate import DESCRIPTION
from veilkit.training.face_identity import load_training_faces
from veilkit.training.face_labels import label_faces
from veilkit.training.generated_faces import load_generated_faces
from veilkit.training.pixels import read_pixels
from veilkit.types import Split

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
    return FaceExamples(
        pixels=torch.cat([part.pixels for part in parts]),
        landmarks=torch.cat([part.landmarks for part in parts]),
        gaze=torch.cat([part.gaze for part in parts]),
        expression=torch.cat([part.expression for part in parts]),
        taught={head: "; ".join(part.taught[head] for part in parts if part.taught[head]) for head in HEADS},
    )
