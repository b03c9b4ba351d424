"""Picture files as an audit reads them: safely, a few at a time, their features kept on disk."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol, TypeAlias

import cv2
import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from veilkit.attacks.pictures import Pictures, embedded
from veilkit.audit.inputs.cache import Cache
from veilkit.errors import DataError, RefusedImage
from veilkit.experts import Embedder
from veilkit.media.reading import Limits, decode, read_bytes, sha256
from veilkit.progress import Progress

LARGEST = 4_000_000  # pixels; larger pictures are measured at this size, which bounds memory and time
_SIZE, _WHOLE_SIZE = "size", "whole size"

Box: TypeAlias = tuple[int, int, int, int]
"""Left, top, width and height in pixels of the upright picture."""


class Part(Protocol):
    """What is made of a whole picture before it is measured. Its repr tells it from others."""

    def size(self, height: int, width: int) -> tuple[int, int]:
        """Height and width of what is made of a picture of this size."""

    def cut(self, pixels: NDArray[np.uint8]) -> NDArray[np.uint8]:
        """HWC uint8 of the whole picture -> of the part."""


@dataclass(frozen=True, slots=True)
class File:
    """A picture file that can be read: its path below the root, its hash, and the size it is measured at.

    box, part: what of the file is the picture, None where it is all of it. whole: the file's hash where there is a
    box or part; `sha256` then stands for both.
    """

    path: str
    sha256: str
    height: int
    width: int
    box: Box | None = None
    whole: str = ""
    part: Part | None = None

    @property
    def file_sha256(self) -> str:
        """The hash of the file's bytes."""
        return self.whole or self.sha256

    def of_part(self, part: Part) -> File:
        """A part of this file, which must have been scanned whole."""
        size = _bounded_size(*part.size(self.height, self.width))
        return File(self.path, sha256(f"{self.sha256} {part}".encode()), *size, None, self.sha256, part)

    def cropped(self, box: Box) -> File | None:
        """A part of this file, which must have been scanned whole; None where the box lies outside of it."""
        left, top = max(0, box[0]), max(0, box[1])
        right, bottom = min(self.width, box[0] + box[2]), min(self.height, box[1] + box[3])
        if right <= left or bottom <= top:
            return None
        inside = (left, top, right - left, bottom - top)
        height, width = _bounded_size(inside[3], inside[2])
        name = sha256(f"{self.sha256} {inside}".encode())
        return File(self.path, name, height, width, inside, self.sha256)


def scan(
    root: Path, paths: Sequence[str], limits: Limits, cache: Cache, what: str, *, whole: bool = False
) -> tuple[dict[str, File], Counter[str]]:
    """Read every file once: those that are pictures by path, and counts of the others by reason.

    whole: the sizes are the files' own, for parts to be cut out, and not those that they are measured at.
    """
    kind = _WHOLE_SIZE if whole else _SIZE
    files: dict[str, File] = {}
    refused: Counter[str] = Counter()
    with Progress(len(paths), f"reading {what}") as progress:
        for path in paths:
            try:
                data = read_bytes(root / path, limits)
                digest = sha256(data)
                size = cache.get(kind, [digest]).get(digest)
                if size is None:
                    height, width = decode(data, limits).shape[:2]
                    taken = (height, width) if whole else _bounded_size(height, width)
                    size = np.array(taken, dtype=np.float32)
                    cache.put(kind, [(digest, size)])
                files[path] = File(path, digest, int(size[0]), int(size[1]))
            except RefusedImage as refusal:
                refused[refusal.reason.partition(":")[0]] += 1
            progress.advance()
    return files, refused


class FilePictures(Pictures):
    """Picture files below `root`. `what` names them in progress reports: originals, or protected."""

    def __init__(self, root: Path, files: Sequence[File], limits: Limits, cache: Cache, what: str) -> None:
        self.files, self.root, self._limits, self._cache, self._what = tuple(files), root, limits, cache, what
        self._sizes = np.array([(file.height, file.width) for file in files], dtype=np.int64).reshape(-1, 2)
        self._features: dict[str, NDArray[np.float32]] = {}
        self._last: tuple[str, NDArray[np.uint8]] | None = None  # of which parts are taken one after the other

    def only(self, places: Sequence[int] | NDArray[np.int64]) -> FilePictures:
        """The pictures at these places."""
        files = [self.files[place] for place in places]
        return FilePictures(self.root, files, self._limits, self._cache, self._what)

    def whole(self) -> FilePictures:
        """The files that these pictures are parts of, as they are."""
        files = [File(file.path, file.file_sha256, *self._whole_size(file)) for file in self.files]
        return FilePictures(self.root, files, self._limits, self._cache, self._what)

    def _whole_size(self, file: File) -> tuple[int, int]:
        kept = self._cache.get(_WHOLE_SIZE, [file.file_sha256]).get(file.file_sha256)
        height, width = self._decoded(file).shape[:2] if kept is None else kept
        return _bounded_size(int(height), int(width))

    @property
    def sizes(self) -> NDArray[np.int64]:
        """(N, 2): height and width of each picture."""
        return self._sizes

    def pixels(self, index: int) -> NDArray[np.uint8]:
        """One picture as HWC uint8 RGB, of at most LARGEST pixels."""
        file = self.files[index]
        if file.box is None and file.part is None:
            return _bounded(self._decoded(file))
        if self._last is None or self._last[0] != file.path:
            self._last = (file.path, self._decoded(file))
        if file.part is not None:
            return _bounded(file.part.cut(self._last[1]))
        assert file.box is not None
        left, top, width, height = file.box
        return _bounded(np.ascontiguousarray(self._last[1][top : top + height, left : left + width]))

    def _decoded(self, file: File) -> NDArray[np.uint8]:
        try:
            data = read_bytes(self.root / file.path, self._limits)
            if sha256(data) != file.file_sha256:
                raise DataError(f"a picture of the {self._what} changed during the audit; run it again")
            return decode(data, self._limits)
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
    height, width = _bounded_size(*pixels.shape[:2])
    if (height, width) == pixels.shape[:2]:
        return pixels
    return np.asarray(cv2.resize(pixels, (width, height), interpolation=cv2.INTER_AREA), dtype=np.uint8)


def _bounded_size(height: int, width: int) -> tuple[int, int]:
    if height * width <= LARGEST:
        return height, width
    scale = (LARGEST / (height * width)) ** 0.5
    return max(1, int(height * scale)), max(1, int(width * scale))
