"""Soft labels beside a folder of pictures: a .npz file that numpy alone can read, so that any trainer can use it."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from veilkit.datasets.views import Views
from veilkit.errors import DataError

SOFT_LABELS = "soft_labels.npz"


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
