"""Landmarks of real faces, found by dlib once and kept: looking for them takes longer than anything that follows."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import TextIO

import torch
from torch import Tensor

from veilkit.checkpoint import load_checkpoint, save_checkpoint, understood
from veilkit.configs import check_range, read_facts
from veilkit.errors import ConfigError
from veilkit.experts.dlib_faces import DlibDetector
from veilkit.progress import Progress
from veilkit.training.pixels import read_picture
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
