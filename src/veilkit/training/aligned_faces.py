"""A split's pictures as aligned crops of faces, found once and kept in a work folder."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path
from typing import TextIO

import numpy as np
import torch
from PIL import Image, ImageOps
from torch import Tensor

from veilkit.errors import DataError
from veilkit.experts.alignment import WIDE, warp
from veilkit.experts.base import Detector
from veilkit.progress import Progress
from veilkit.types import Record, Split

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

    Crops are named by a hash of picture, finder, size and templates, so that a changed picture is aligned anew. They
    are as private as the pictures.
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
    image = read_picture(file)
    found = finder.detect(image[None])[0]
    place = found.largest()
    if place is None:
        (folder / (stem + _NONE)).touch()
        return stem + _NONE, False
    matrix = WIDE[found.order].matrix(found.points[place][None].double(), size)
    crop = warp(image[None], matrix, (size, size), beyond="border")[0]
    pixels = (crop * 255).round().clamp(0, 255).byte().permute(1, 2, 0).contiguous().numpy()
    draft = folder / f"{stem}.part"
    Image.fromarray(pixels).save(draft, "PNG")
    draft.replace(folder / f"{stem}.png")
    return f"{stem}.png", False


def read_picture(file: Path) -> Tensor:
    """(3, H, W) in [0, 1], upright."""
    try:
        with Image.open(file) as image:
            upright = ImageOps.exif_transpose(image).convert("RGB")
    except (OSError, ValueError) as error:
        raise DataError(f"{file.name}: cannot be read as an image: {error}") from error
    return torch.from_numpy(np.array(upright)).permute(2, 0, 1).float().div_(255)
