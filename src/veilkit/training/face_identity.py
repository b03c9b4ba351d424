"""A face identity embedder from labelled pictures: faces are put upright, then Re-ID training takes over."""

from __future__ import annotations

import hashlib
from collections.abc import Collection
from io import BytesIO
from pathlib import Path
from typing import TextIO

import torch
from PIL import Image
from torch import Tensor

from veilkit.checkpoint import load_checkpoint, save_checkpoint, understood
from veilkit.configs import check_range, read_facts
from veilkit.datasets.folder import load_folder
from veilkit.datasets.lfw import is_lfw, load_lfw, outside_folds
from veilkit.errors import ConfigError, DataError
from veilkit.experts.alignment import ARCFACE
from veilkit.experts.dlib_faces import DlibDetector
from veilkit.progress import Progress
from veilkit.synthetic.writing import write_whole
from veilkit.training.pixels import read_picture
from veilkit.training.reid import ReidTraining, train_reid
from veilkit.training.reid_config import ReidConfig
from veilkit.types import Split

_KIND = "face-labels"
_SAVE_EVERY = 500  # pictures


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

    work_dir: keeps the landmarks, the aligned faces (as private as the pictures) and the state; a run that was
    stopped goes on.
    """
    work_dir = Path(work_dir)
    landmarks = label_faces(split, work_dir, stream=stream)
    aligned = align_faces(split, landmarks, work_dir / "aligned", config.size[0], stream=stream)
    trained = train_reid(aligned, config, out, work_dir=work_dir, init=init, stream=stream)
    return trained, len(split) - len(aligned)


def align_faces(split: Split, landmarks: Tensor, folder: Path, side: int, *, stream: TextIO | None = None) -> Split:
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
                _write(_aligned(split, place, landmarks[place], side), folder / name)
            progress.advance(1)
    written = load_folder(folder, "folder", split.name)
    if sorted(record.path for record in written.records) != sorted(names.values()):
        raise DataError(f"{folder} holds faces of another run: give this one its own work folder")
    return written


def _aligned(split: Split, place: int, landmarks: Tensor, side: int) -> Tensor:
    image = read_picture(split, place).float().div_(255)[None]
    points = landmarks[None] * torch.tensor([image.shape[3], image.shape[2]])
    return ARCFACE.align(image, points, side)[0].mul(255).round().byte()


def _write(face: Tensor, target: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    buffer = BytesIO()
    Image.fromarray(face.permute(1, 2, 0).contiguous().numpy()).save(buffer, "PNG")
    write_whole(target, buffer.getvalue())
