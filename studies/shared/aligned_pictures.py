"""Picture files of faces as aligned crops, with features that are kept."""

from __future__ import annotations

import hashlib

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from veilkit.attacks.pictures import Pictures, embedded
from veilkit.audit.inputs.cache import Cache
from veilkit.audit.inputs.pictures import FilePictures
from veilkit.experts import Embedder
from veilkit.experts.alignment import warp
from veilkit.progress import Progress


class AlignedPictures(Pictures):
    """Picture files as wide crops: upright, from hairline to chin (`alignment.WIDE`), beyond the picture its border.

    matrices: (N, 2, 3), from each picture to its crop. A protected picture is cut where its original's face was.
    """

    def __init__(self, files: FilePictures, matrices: Tensor, side: int, cache: Cache) -> None:
        self.files, self._matrices, self._side, self._cache = files, matrices, side, cache

    @property
    def sizes(self) -> NDArray[np.int64]:
        """(N, 2), all of one size."""
        return np.full((len(self._matrices), 2), self._side, dtype=np.int64)

    def load(self, index: int) -> Tensor:
        """One crop, (3, S, S) float32 in [0, 1]."""
        size = (self._side, self._side)
        picture, matrix = self.files.load(index)[None], self._matrices[index][None]
        return warp(picture, matrix, size, beyond="border")[0].clamp(0, 1)

    def features(self, embedder: Embedder) -> NDArray[np.float32]:
        """Raw features (N, D), kept by file, place and expert."""
        kind = f"aligned {self._side} {embedder.info.fingerprint}"
        names = [self._name(index) for index in range(len(self._matrices))]
        known = self._cache.get(kind, names)
        missing = [index for index, name in enumerate(names) if name not in known]
        with Progress(len(names), f"embedding ({embedder.name})", done=len(names) - len(missing)) as progress:
            for part, images in self.batches(missing):
                new = [(names[i], row) for i, row in zip(part, embedded(embedder, images), strict=True)]
                self._cache.put(kind, new)
                known.update(new)
                progress.advance(len(part))
        return np.stack([known[name] for name in names])

    def _name(self, index: int) -> str:
        place = self._matrices[index].numpy().round(4).tobytes()
        return hashlib.sha256(self.files.files[index].sha256.encode() + place).hexdigest()
