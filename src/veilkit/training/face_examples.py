"""Faces to learn landmarks, gaze and expression from: generated ones, whose truth is known, and labelled real ones."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TextIO

import torch
from torch import Tensor

from veilkit.checkpoint import load_checkpoint, save_checkpoint
from veilkit.datasets.generated.faces import load_generated_faces
from veilkit.errors import ConfigError, DataError
from veilkit.experts.base import Detections
from veilkit.experts.dlib_faces import DlibDetector
from veilkit.networks.face_attributes import HEADS, Head
from veilkit.progress import Progress
from veilkit.training.pixels import read_pixels
from veilkit.types import Split

_LABELS_KIND = "face-labels"
_CHUNK = 16
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
    from PIL import Image

    with Image.open(split.file(0)) as image:
        return image.height, image.width


def labelled_examples(split: Split, side: int, work_dir: Path, *, stream: TextIO | None = None) -> FaceExamples:
    """Pictures of real faces with the landmarks that dlib finds; pictures without a face are left out.

    The labels are kept in `work_dir`, since finding them takes longer than reading the pictures.
    """
    pixels = read_pixels(split, (side, side))
    digest = hashlib.sha256(pixels.numpy().tobytes()).hexdigest()
    kept = Path(work_dir) / f"labels-{digest[:16]}.safetensors"
    if kept.exists():
        landmarks = load_checkpoint(kept, _LABELS_KIND).tensors["landmarks"]
    else:
        landmarks = _found(pixels, stream)
        save_checkpoint(kept, {"landmarks": landmarks}, {"pictures": digest}, _LABELS_KIND)
    seen = ~landmarks.isnan().any(-1).any(-1)
    if not seen.any():
        raise DataError(f"expected faces in the {split.name!r} split, but dlib finds none")
    count = int(seen.sum())
    return FaceExamples(
        pixels=pixels[seen],
        landmarks=landmarks[seen],
        gaze=torch.full((count, 2), torch.nan),
        expression=torch.full((count,), UNKNOWN),
        taught={"landmarks": f"{count} real faces by dlib's 68 landmarks", "gaze": "", "expression": ""},
    )


def _found(pixels: Tensor, stream: TextIO | None) -> Tensor:
    """Landmarks (N, 68, 2) of the largest face in each picture, NaN where none is found even in a doubled one."""
    plain, doubled = DlibDetector(68, enlarged=0), DlibDetector(68, enlarged=1)
    landmarks = torch.full((len(pixels), 68, 2), torch.nan)
    with Progress(len(pixels), "labelling", stream=stream) as progress:
        for start in range(0, len(pixels), _CHUNK):
            images = pixels[start : start + _CHUNK].float().div_(255)
            for place, found in enumerate(plain.detect(images)):
                if not len(found.boxes):
                    (found,) = doubled.detect(images[place : place + 1])
                if len(found.boxes):
                    landmarks[start + place] = found.points[_largest(found)]
            progress.advance(len(images))
    return landmarks


def _largest(found: Detections) -> int:
    return int((found.boxes[:, 2:] - found.boxes[:, :2]).prod(1).argmax())


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


