"""Picture files as an audit reads them: safely, a few at a time, their features kept on disk."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import cv2
import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from veilkit.attacks.pictures import Pictures, embedded
from veilkit.audit.cache import Cache
from veilkit.errors import DataError, RefusedImage
from veilkit.experts import Embedder
from veilkit.pipeline.reading import Limits, decode, read_bytes, sha256
from veilkit.progress import Progress

LARGEST = 4_000_000  # pixels; larger pictures are measured at this size, which bounds memory and time
_SIZE = "size"


@dataclass(frozen=True, slots=True)
class File:
    """A picture file that can be read: its path below the root, its hash, and the size it is measured at."""

    path: str
    sha256: str
    height: int
    width: int


def scan(
    root: Path, paths: Sequence[str], limits: Limits, cache: Cache, what: str
) -> tuple[dict[str, File], Counter[str]]:
    """Read every file once: those that are pictures by path, and counts of the others by reason."""
    files: dict[str, File] = {}
    refused: Counter[str] = Counter()
    with Progress(len(paths), f"reading {what}") as progress:
        for path in paths:
            try:
                data = read_bytes(root / path, limits)
                digest = sha256(data)
                size = cache.get(_SIZE, [digest]).get(digest)
                if size is None:
                    size = np.array(_bounded(decode(data, limits)).shape[:2], dtype=np.float32)
                    cache.put(_SIZE, [(digest, size)])
                files[path] = File(path, digest, int(size[0]), int(size[1]))
            except RefusedImage as refusal:
                refused[refusal.reason.partition(":")[0]] += 1
            progress.advance()
    return files, refused


class FilePictures(Pictures):
    """Picture files below `root`. `what` names them in progress reports: originals, or protected."""

    def __init__(self, root: Path, files: Sequence[File], limits: Limits, cache: Cache, what: str) -> None:
        self.files, self._root, self._limits, self._cache, self._what = tuple(files), root, limits, cache, what
        self._sizes = np.array([(file.height, file.width) for file in files], dtype=np.int64).reshape(-1, 2)
        self._features: dict[str, NDArray[np.float32]] = {}

    @property
    def sizes(self) -> NDArray[np.int64]:
        """(N, 2): height and width of each picture."""
        return self._sizes

    def pixels(self, index: int) -> NDArray[np.uint8]:
        """One picture as HWC uint8 RGB, of at most LARGEST pixels."""
        file = self.files[index]
        try:
            data = read_bytes(self._root / file.path, self._limits)
            if sha256(data) != file.sha256:
                raise DataError(f"a picture of the {self._what} changed during the audit; run it again")
            return _bounded(decode(data, self._limits))
        except RefusedImage as refusal:
            raise DataError(
                f"a picture of the {self._what} changed during the audit: {refusal.reason}; run it again"
            ) from None

    def load(self, index: int) -> Tensor:
        """One picture, (3, H, W) float32 in [0, 1]."""
        return torch.from_numpy(self.pixels(index)).permute(2, 0, 1).to(torch.float32).div_(255)

    def features(self, embedder: Embedder) -> NDArray[np.float32]:
        """Raw features (N, D); files of one content are embedded once, and never again by the same expert."""
        fingerprint = embedder.info.fingerprint
        if fingerprint not in self._features:
            self._features[fingerprint] = self._embed(embedder, f"features {fingerprint}")
        return self._features[fingerprint]

    def _embed(self, embedder: Embedder, kind: str) -> NDArray[np.float32]:
        known = self._cache.get(kind, [file.sha256 for file in self.files])
        first: dict[str, int] = {}
        for index, file in enumerate(self.files):
            if file.sha256 not in known:
                first.setdefault(file.sha256, index)
        if first:
            distinct = len({file.sha256 for file in self.files})
            what = f"embedding {self._what} ({embedder.name})"
            with Progress(distinct, what, done=distinct - len(first)) as progress:
                for part, images in self.batches(list(first.values())):
                    rows = embedded(embedder, images)
                    new = [(self.files[index].sha256, row) for index, row in zip(part, rows, strict=True)]
                    self._cache.put(kind, new)
                    known.update(new)
                    progress.advance(len(part))
        return np.stack([known[file.sha256] for file in self.files])


def _bounded(pixels: NDArray[np.uint8]) -> NDArray[np.uint8]:
    height, width = pixels.shape[:2]
    if height * width <= LARGEST:
        return pixels
    scale = (LARGEST / (height * width)) ** 0.5
    size = (max(1, int(width * scale)), max(1, int(height * scale)))
    return np.asarray(cv2.resize(pixels, size, interpolation=cv2.INTER_AREA), dtype=np.uint8)
