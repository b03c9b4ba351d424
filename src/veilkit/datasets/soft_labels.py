"""Soft labels beside a folder of pictures: a .npz file that numpy alone can read, so that any trainer can use it.

They may hold views, too: a picture mirrored and shifted, with a teacher's logits on just that view. A student that
sees a shifted picture but gets the teacher's answer to the picture at rest learns to ignore what the teacher heeds.
Views keep both together, and give it more to learn from than there are pictures.
"""

from __future__ import annotations

import io
import zipfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Self

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from veilkit.errors import DataError

SOFT_LABELS = "soft_labels.npz"
_FAR, _NEAR = 10 / 256, 5 / 256  # of a picture's height, as AGW's random crops reach
# Mirrored or not, then how far down and to the right, in shares of the height. The first is the picture at rest.
MOVES: NDArray[np.float32] = np.array(
    [
        (0, 0, 0), (1, 0, 0), (0, _FAR, -_NEAR), (1, -_FAR, _NEAR),
        (0, _NEAR, _FAR), (1, -_NEAR, -_FAR), (0, -_FAR, -_FAR), (1, _FAR, _FAR),
    ],
    dtype=np.float32,
)  # fmt: skip
_BATCH = 64


@dataclass(frozen=True, slots=True, eq=False)
class Views:
    """moves: (K, 3). logits: (K, N, C), a teacher's on each of N pictures moved so, before any softmax."""

    moves: NDArray[np.float32]
    logits: NDArray[np.float32]

    def __post_init__(self) -> None:
        if self.moves.ndim != 2 or self.moves.shape[1] != 3 or not len(self.moves):
            raise DataError(f"expected moves of shape (views, 3), but got {self.moves.shape}")
        if self.logits.ndim != 3 or len(self.logits) != len(self.moves):
            raise DataError(
                f"expected logits of shape ({len(self.moves)}, pictures, classes), but got {self.logits.shape}"
            )

    @classmethod
    def seen_by(cls, teacher: Callable[[Tensor], Tensor], pixels: Tensor) -> Self:
        """What a teacher says of 8-bit pictures (N, 3, H, W): it takes images (n, 3, H, W) in [0, 1] to logits."""
        parts = [views_logits(teacher, some.float().div(255)) for some in torch.split(pixels, _BATCH)]
        return cls(MOVES, np.concatenate(parts, axis=1))

    def some(self, places: NDArray[np.int64]) -> Views:
        """Of some of the pictures."""
        return Views(self.moves, self.logits[:, places])


def views_logits(teacher: Callable[[Tensor], Tensor], images: Tensor) -> NDArray[np.float32]:
    """(K, n, C): the teacher's logits on images (n, 3, H, W) in [0, 1] in each view."""
    return np.stack([teacher(moved(images, move)).numpy() for move in MOVES])


def moved(images: Tensor, move: NDArray[np.float32]) -> Tensor:
    """Images (N, 3, H, W) mirrored and shifted; what comes in from outside is black."""
    height, width = images.shape[2:]
    down, across = (round(float(share) * height) for share in move[1:])
    seen = images.flip(3) if move[0] else images
    if not down and not across:
        return seen
    laid = torch.zeros_like(seen)
    rows, columns = _overlap(down, height), _overlap(across, width)
    laid[:, :, rows[0], columns[0]] = seen[:, :, rows[1], columns[1]]
    return laid


def _overlap(shift: int, length: int) -> tuple[slice, slice]:
    """Where values go to, and where they come from."""
    shift = max(-length, min(length, shift))
    return slice(max(shift, 0), length + min(shift, 0)), slice(max(-shift, 0), length - max(shift, 0))


@dataclass(frozen=True, slots=True, eq=False)
class SoftLabels:
    """files: N paths below the folder. classes: C names. logits: (N, C) float32, before any softmax.

    views: the same of the pictures mirrored and shifted, where they are known; in the file as `moves` (K, 3) and
    `view_logits` (K, N, C), in 16 bits.
    """

    files: tuple[str, ...]
    classes: tuple[str, ...]
    logits: NDArray[np.float32]
    views: Views | None = None

    def __post_init__(self) -> None:
        if self.logits.shape != (len(self.files), len(self.classes)):
            raise DataError(
                f"expected logits of shape ({len(self.files)}, {len(self.classes)}), but got {self.logits.shape}"
            )
        if self.views is not None and self.views.logits.shape[1:] != self.logits.shape:
            raise DataError(
                f"expected logits of shape {self.logits.shape} for each view, but got {self.views.logits.shape[1:]}"
            )

    def of(self, files: Sequence[str]) -> NDArray[np.float32]:
        """The logits of some of the files, in their order."""
        return self.logits[self._places(files)]

    def views_of(self, files: Sequence[str]) -> Views | None:
        """The views of some of the files, in their order."""
        return None if self.views is None else self.views.some(self._places(files))

    def _places(self, files: Sequence[str]) -> NDArray[np.int64]:
        place = {name: index for index, name in enumerate(self.files)}
        missing = [name for name in files if name not in place]
        if missing:
            raise DataError(f"{SOFT_LABELS} has no labels for {len(missing)} of {len(files)} pictures")
        return np.array([place[name] for name in files], dtype=np.int64)

    def encode(self) -> bytes:
        """The file's bytes: the same labels give the same bytes."""
        buffer = io.BytesIO()
        with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
            held = {
                "files": np.array(self.files, dtype=np.str_),
                "classes": np.array(self.classes, dtype=np.str_),
                "logits": self.logits.astype("<f4"),
            }
            if self.views is not None:
                held |= {"moves": self.views.moves.astype("<f4"), "view_logits": self.views.logits.astype("<f2")}
            for name, values in held.items():
                array = io.BytesIO()
                np.lib.format.write_array(array, values, allow_pickle=False)
                # numpy's own writer stamps the time, which would change the bytes
                archive.writestr(zipfile.ZipInfo(f"{name}.npy", (1980, 1, 1, 0, 0, 0)), array.getvalue())
        return buffer.getvalue()


def read_soft_labels(folder: Path) -> SoftLabels | None:
    """The soft labels of a folder, or None where it has none."""
    file = folder / SOFT_LABELS
    if not file.is_file():
        return None
    try:
        with np.load(file, allow_pickle=False) as held:
            files, classes, logits = (held[name] for name in ("files", "classes", "logits"))
            views = None
            if "view_logits" in held:
                views = Views(held["moves"].astype(np.float32), held["view_logits"].astype(np.float32))
    except (OSError, KeyError, ValueError, zipfile.BadZipFile) as error:
        raise DataError(f"{file} holds no soft labels: expected files, classes and logits ({error})") from None
    return SoftLabels(tuple(map(str, files)), tuple(map(str, classes)), logits.astype(np.float32), views)
