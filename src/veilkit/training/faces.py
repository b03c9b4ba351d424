"""A split's faces, found, put upright and kept in a work folder; and an identity embedder trained on them.

What is kept, landmarks and crops, is as private as the pictures.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

import numpy as np
import torch
from PIL import Image, ImageOps
from torch import Tensor

from veilkit.checkpoint import load_checkpoint, save_checkpoint, understood
from veilkit.configs import check_range, read_facts
from veilkit.datasets.folder import load_folder
from veilkit.datasets.lfw import is_lfw, load_lfw, outside_folds
from veilkit.errors import ConfigError, DataError
from veilkit.experts.alignment import ARCFACE, WIDE, warp
from veilkit.experts.base import Detector
from veilkit.experts.dlib_faces import DlibDetector
from veilkit.progress import Progress
from veilkit.synthetic.writing import write_whole
from veilkit.training.pixels import read_picture
from veilkit.training.reid_config import ReidConfig
from veilkit.types import Record, Split

if TYPE_CHECKING:
    from veilkit.training.reid import ReidTraining

_KIND = "face-labels"
_SAVE_EVERY = 500  # pictures
_NONE = ".none"  # marks a picture in which no face was found
_PLACES = repr([(order, template.points) for order, template in WIDE.items()])


@dataclass(frozen=True, slots=True)
class FaceCrops:
    """crops: a split of PNG crops, in the order of the pictures. without: pictures in which no face was found."""

    crops: Split
    without: int


def align_faces(
    split: Split, finder: Detector, size: int, folder: Path, *, stream: TextIO | None = None
) -> FaceCrops:
    """The largest face of each picture, `size` pixels a side. What `folder` already holds is not made again.

    Crops are named by a hash of picture, finder, size and templates, so that a changed picture is aligned anew.
    """
    folder.mkdir(parents=True, exist_ok=True)
    records: list[Record] = []
    with Progress(len(split), "aligning", stream=stream) as progress:
        for index, record in enumerate(split.records):
            name, kept = _crop(split.file(index), finder, size, folder)
            if name.endswith(".png"):
                records.append(Record(name, record.identity, record.camera))
            progress.advance(1, kept=int(kept))
    if not records:
        raise DataError(f"no face was found in any of {len(split)} pictures: is {finder.name!r} the right finder?")
    return FaceCrops(Split(split.name, folder, tuple(records)), len(split) - len(records))


def _crop(file: Path, finder: Detector, size: int, folder: Path) -> tuple[str, bool]:
    """The name of a picture's crop, or of the mark that it has none; whether that was there already."""
    try:
        data = file.read_bytes()
    except OSError as error:
        raise DataError(f"{file.name}: cannot be read: {error.strerror}") from None
    stem = hashlib.sha256(f"{finder.info.fingerprint} {size} {_PLACES}\0".encode() + data).hexdigest()[:32]
    for suffix in (".png", _NONE):
        if (folder / (stem + suffix)).exists():
            return stem + suffix, True
    image = read_upright(file)
    found = finder.detect(image[None])[0]
    place = found.largest()
    if place is None:
        (folder / (stem + _NONE)).touch()
        return stem + _NONE, False
    matrix = WIDE[found.order].matrix(found.points[place][None].double(), size)
    crop = warp(image[None], matrix, (size, size), beyond="border")[0]
    _write((crop * 255).round().clamp(0, 255).byte(), folder / f"{stem}.png")
    return f"{stem}.png", False


def read_upright(file: Path) -> Tensor:
    """(3, H, W) in [0, 1], upright."""
    try:
        with Image.open(file) as image:
            upright = ImageOps.exif_transpose(image).convert("RGB")
    except (OSError, ValueError) as error:
        raise DataError(f"{file.name}: cannot be read as an image: {error}") from error
    return torch.from_numpy(np.array(upright)).permute(2, 0, 1).float().div_(255)


def label_faces(split: Split, work_dir: Path, *, stream: TextIO | None = None) -> Tensor:
    """(N, 68, 2) as shares of width and height, of the largest face in each picture; NaN where dlib finds none.

    Kept in `work_dir`; a run that was stopped goes on.
    """
    listed = "\n".join(
        f"{record.path}\t{split.file(place).stat().st_size}" for place, record in enumerate(split.records)
    )
    digest = hashlib.sha256(listed.encode("utf-8", "surrogateescape")).hexdigest()
    file = Path(work_dir) / f"labels-{digest[:16]}.safetensors"
    landmarks, done = torch.full((len(split), 68, 2), torch.nan), 0
    if file.exists():
        saved = load_checkpoint(file, _KIND, unknown=("landmarks",))
        with understood(file.name):
            done = read_facts(saved.config, {"done": int})["done"]
            check_range("done", done, 0, len(split))
            kept = saved.tensors.get("landmarks")
            if kept is None or kept.shape != landmarks.shape or kept.dtype != landmarks.dtype:
                raise ConfigError(f"landmarks must be of shape {tuple(landmarks.shape)}")
            landmarks = kept
    if done == len(split):
        return landmarks
    plain, doubled = DlibDetector(68, enlarged=0), DlibDetector(68, enlarged=1)
    with Progress(len(split), "looking for faces", done=done, stream=stream) as progress:
        for place in range(done, len(split)):
            image = read_picture(split, place).float().div_(255)[None]
            for detector in (plain, doubled):  # a doubled picture takes four times as long
                (found,) = detector.detect(image)
                if (face := found.largest()) is not None:
                    sides = torch.tensor([image.shape[3], image.shape[2]])
                    landmarks[place] = found.points[face] / sides
                    break
            progress.advance(1)
            if (place + 1) % _SAVE_EVERY == 0 or place + 1 == len(split):
                save_checkpoint(file, {"landmarks": landmarks}, {"done": place + 1}, _KIND)
    return landmarks


def load_training_faces(root: Path, folds: Collection[int], *, fewest: int, shots: int | None) -> Split:
    """Of LFW (a folder with pairs.txt) everybody whom no pair of `folds` shows; of any other folder everybody.

    fewest: people with less pictures are left out. shots: at most so many of one person.
    """
    if is_lfw(root):
        return outside_folds(load_lfw(root), folds, fewest=fewest, shots=shots)
    split = load_folder(root, "folder")
    taken: dict[str | None, list[int]] = {}
    for place, record in enumerate(split.records):
        taken.setdefault(record.identity, []).append(place)
    kept = sorted(place for places in taken.values() if len(places) >= fewest for place in places[:shots])
    return Split("train", split.root, tuple(split.records[place] for place in kept))


def train_face_identity(
    split: Split,
    config: ReidConfig,
    out: Path,
    *,
    work_dir: Path,
    init: Path | None = None,
    stream: TextIO | None = None,
) -> tuple[ReidTraining, int]:
    """Find, align and learn the faces of `split`; also returns how many pictures no face was found in.

    work_dir: keeps the landmarks, the aligned faces and the state; a run that was stopped goes on.
    """
    from veilkit.training.reid import train_reid  # only who trains pays for its imports

    work_dir = Path(work_dir)
    landmarks = label_faces(split, work_dir, stream=stream)
    aligned = align_labelled(split, landmarks, work_dir / "aligned", config.size[0], stream=stream)
    trained = train_reid(aligned, config, out, work_dir=work_dir, init=init, stream=stream)
    return trained, len(split) - len(aligned)


def align_labelled(
    split: Split, landmarks: Tensor, folder: Path, side: int, *, stream: TextIO | None = None
) -> Split:
    """Each picture with landmarks (N, 68, 2), in shares, as an upright face of side x side pixels, each once.

    People and pictures are numbered, so that no name of a person gets into a run.
    """
    numbers = {person: f"{number:05}" for number, person in enumerate(split.identities)}
    seen = [place for place in range(len(split)) if not bool(landmarks[place].isnan().any())]
    if not seen:
        raise DataError(f"expected faces in the {split.name!r} split, but dlib finds none")
    names = {place: f"{numbers[str(split.records[place].identity)]}/{place:06}.png" for place in seen}
    with Progress(len(seen), "aligning", stream=stream) as progress:
        for place, name in names.items():
            if not (folder / name).exists():
                image = read_picture(split, place).float().div_(255)[None]
                points = landmarks[place][None] * torch.tensor([image.shape[3], image.shape[2]])
                _write(ARCFACE.align(image, points, side)[0].mul(255).round().byte(), folder / name)
            progress.advance(1)
    written = load_folder(folder, "folder", split.name)
    if sorted(record.path for record in written.records) != sorted(names.values()):
        raise DataError(f"{folder} holds faces of another run: give this one its own work folder")
    return written


def _write(face: Tensor, target: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    buffer = BytesIO()
    Image.fromarray(face.permute(1, 2, 0).contiguous().numpy()).save(buffer, "PNG")
    write_whole(target, buffer.getvalue())
