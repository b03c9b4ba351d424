"""A split in memory: its pictures as 8-bit tensors of one size, who is in them, a digest, and batches of it."""

from __future__ import annotations

import hashlib

import numpy as np
import torch
from numpy.typing import NDArray
from PIL import Image
from torch import Tensor

from veilkit.datasets.augment import AugmentConfig, augment
from veilkit.datasets.sampler import PKSampler
from veilkit.errors import DataError
from veilkit.rng import Randomness
from veilkit.types import Split


def read_pixels(split: Split, size: tuple[int, int]) -> Tensor:
    """uint8 (N, 3, height, width) in the split's order; other sizes are resized bilinearly."""
    if not len(split):
        raise DataError(f"the {split.name!r} split holds no images")
    pixels = torch.empty(len(split), 3, *size, dtype=torch.uint8)
    for i in range(len(split)):
        pixels[i] = read_picture(split, i, size)
    return pixels


def read_picture(split: Split, index: int, size: tuple[int, int] | None = None) -> Tensor:
    """uint8 (3, height, width) of one picture, resized bilinearly where `size` says so."""
    try:
        with Image.open(split.file(index)) as image:
            picture = image.convert("RGB")
            if size is not None:
                picture = picture.resize((size[1], size[0]), Image.Resampling.BILINEAR)
    except (OSError, ValueError) as error:
        raise DataError(f"{split.records[index].path}: cannot be read as an image: {error}") from error
    plane = torch.frombuffer(bytearray(picture.tobytes()), dtype=torch.uint8)
    return plane.view(picture.height, picture.width, 3).permute(2, 0, 1)


def read_labels(split: Split) -> Tensor:
    """int64 (N,): the place of each picture's person among the split's identities; each picture must have one."""
    if any(record.identity is None for record in split.records):
        raise DataError(f"expected an identity for each image of the {split.name!r} split, but some have none")
    places = {name: place for place, name in enumerate(split.identities)}
    return torch.tensor([places[str(record.identity)] for record in split.records])


def split_digest(split: Split) -> str:
    """SHA-256 of which pictures a split holds and of whom, by their names."""
    records = "\n".join(f"{record.path}\t{record.identity}" for record in split.records)
    return hashlib.sha256(records.encode("utf-8", "surrogateescape")).hexdigest()


class LabelledBatches:
    """A split in memory, in batches of P identities x K images; every choice derives from (rng, epoch, step)."""

    def __init__(
        self, split: Split, size: tuple[int, int], batch: tuple[int, int], augment: AugmentConfig, rng: Randomness
    ) -> None:
        self.labels = read_labels(split)
        self._sampler = PKSampler(tuple(self.labels.tolist()), *batch)
        self.pixels = read_pixels(split, size)
        self._augment, self._rng = augment, rng

    def batches(self, epoch: int) -> list[NDArray[np.int64]]:
        """The batches of `epoch`, as positions in the split."""
        return self._sampler.epoch(self._rng, epoch)

    def varied(self, positions: NDArray[np.int64], epoch: int, step: int) -> tuple[Tensor, Tensor]:
        """Augmented pictures (N, 3, H, W) in [0, 1] and their labels (N,)."""
        rng = self._rng.child("augment", epoch, step)
        return augment(self.pixels[positions], self._augment, rng), self.labels[positions]
