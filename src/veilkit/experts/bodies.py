"""People found as a whole, by YOLOX (Ge et al. 2021): where the head is of somebody whose face no detector sees.

Who has turned away, looks down or is tiny still has a body. The network is a file of YOLOX's releases (its smallest
one, `yolox_nano.onnx`, will do), run by OpenCV; no package ships one.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from veilkit.errors import CheckpointError
from veilkit.experts.base import Detections, ExpertInfo
from veilkit.experts.names import file_sha256
from veilkit.experts.pixel_detector import PixelDetector, Pixels, distinct, nothing, resized
from veilkit.experts.search_size import LEAST_SIDE

FILE = "yolox_nano.onnx"
_SIDE, _GREY = 416, 114  # pixels that the network takes, and what is around a picture of other proportions
_PERSON = 5  # column of the score, after box and objectness
_ONE_BODY = 0.5
_TILED = 2 * _SIDE  # pixels of the longer side, from which on each quarter is looked at as well
_TILE = 0.6  # of each side
_AT_EDGE, _CUT = 2.0, 0.4  # of the network's pixels, and by what the score of somebody is multiplied who is cut there
_HEAD_HIGH, _HEAD_WIDE = 0.2, 0.6  # of a standing body's height and width
_LYING = 1.2  # width to height, from which on a body may lie, with its head at either end
_HEAD_END = 0.3

Floats = NDArray[np.float32]


class BodyDetector(PixelDetector):
    """Boxes of people, without points.

    threshold: the least score. tiles: sides in pixels of the parts that are looked at besides the whole, each half
    over the next; none are the quarters of a large picture.
    """

    def __init__(self, path: Path, sha256: str, *, threshold: float = 0.4, tiles: Sequence[int] = ()) -> None:
        self._path, self._sha256, self._threshold, self._tiles = path, sha256, threshold, tuple(tiles)
        self._net: Any = None

    @classmethod
    def load(cls, path: Path, *, threshold: float = 0.4, tiles: Sequence[int] = ()) -> BodyDetector:
        """From YOLOX's ONNX file, which takes 416x416 pixels."""
        return cls(Path(path), file_sha256(Path(path)), threshold=threshold, tiles=tiles)

    @property
    def info(self) -> ExpertInfo:
        """Who this expert is."""
        return ExpertInfo(
            name="yolox",
            kind="detector",
            dim=0,
            sha256=self._sha256,
            differentiable=False,
            licence="Apache-2.0; trained on COCO",
            source="YOLOX's releases",
            origin="file",
        )

    def __getstate__(self) -> dict[str, Any]:
        """Worker processes load the network themselves; it cannot be sent."""
        return {**self.__dict__, "_net": None}

    def find(self, pixels: Pixels) -> Detections:
        """The people of a picture (H, W, 3), surest first: of the whole, and of tiles or a large one's quarters."""
        height, width = pixels.shape[:2]
        parts = [(0, 0, width, height)]
        if self._tiles:
            parts += [part for side in self._tiles for part in tiled(width, height, side)]
        elif max(height, width) > _TILED:
            wide, high = round(_TILE * width), round(_TILE * height)
            parts += [(x, y, x + wide, y + high) for x in (0, width - wide) for y in (0, height - high)]
        rows = np.concatenate([self._seen(pixels, part) for part in parts])
        rows = rows[distinct(rows[:, :4], rows[:, 4], _ONE_BODY)]
        return Detections(
            torch.from_numpy(rows[:, :4].copy()), torch.from_numpy(rows[:, 4].copy()), torch.zeros(len(rows), 0, 2)
        ) if len(rows) else nothing()  # fmt: skip

    def _seen(self, pixels: Pixels, part: tuple[int, int, int, int]) -> Floats:
        """(K, 5): box in the picture and score of each person in a part of it."""
        import cv2

        left, top, right, bottom = part
        scale = _SIDE / max(right - left, bottom - top)
        size = round((right - left) * scale), round((bottom - top) * scale)
        if min(size) < LEAST_SIDE:
            return np.zeros((0, 5), np.float32)
        shown = np.full((_SIDE, _SIDE, 3), _GREY, np.float32)
        small = resized(np.ascontiguousarray(pixels[top:bottom, left:right]), size[::-1])
        shown[: size[1], : size[0]] = small[:, :, ::-1]  # blue, green, red
        try:
            if self._net is None:
                self._net = cv2.dnn.readNetFromONNX(str(self._path))
            self._net.setInput(np.ascontiguousarray(shown.transpose(2, 0, 1)[None]))
            said = np.asarray(self._net.forward(), np.float32)[0]
            places = _places()
            middles, sides = (said[:, :2] + places[:, :2]) * places[:, 2:], np.exp(said[:, 2:4]) * places[:, 2:]
        except (cv2.error, ValueError, IndexError) as error:
            raise CheckpointError(
                f"{self._path.name}: no people can be found with it ({str(error).partition(chr(10))[0]}); expected "
                f"an ONNX file of YOLOX's releases that takes {_SIDE}x{_SIDE} pixels, such as {FILE}"
            ) from None
        score = said[:, 4] * said[:, _PERSON]
        boxes = np.concatenate([middles - sides / 2, middles + sides / 2], 1).clip(0, [*size, *size])
        if self._tiles:  # who is cut by a tile's edge is likely to be whole in another
            inner = [left > 0, top > 0, right < pixels.shape[1], bottom < pixels.shape[0]]
            cut = np.abs(boxes - [0, 0, *size]) < _AT_EDGE
            score = np.where((cut & inner).any(1), _CUT * score, score)
        found = score >= self._threshold
        shift = np.array([left, top, left, top], np.float32)
        return np.concatenate([boxes[found] / scale + shift, score[found, None]], 1).astype(np.float32)


def tiled(width: int, height: int, side: int) -> Iterator[tuple[int, int, int, int]]:
    """Squares of a larger picture, or what of them lies in it, each at least half over its neighbours."""
    if max(width, height) <= side:
        return
    starts = [
        {round(place * max(0, length - side) / max(1, count)) for place in range(count + 1)}
        for length in (width, height)
        for count in [math.ceil(max(0, length - side) / (side / 2))]
    ]
    for top in sorted(starts[1]):
        for left in sorted(starts[0]):
            yield left, top, min(width, left + side), min(height, top + side)


def _places() -> Floats:
    """Column, row and stride of each answer of the network."""
    grids = []
    for stride in (8, 16, 32):
        y, x = np.mgrid[: _SIDE // stride, : _SIDE // stride].reshape(2, -1)
        grids.append(np.stack([x, y, np.full_like(x, stride)], 1))
    return np.concatenate(grids).astype(np.float32)


def heads(box: tuple[float, float, float, float]) -> list[tuple[float, float, float, float]]:
    """Where the head of a body may be: at the top of a standing one, at either end of a lying one."""
    left, top, right, bottom = box
    wide, high = right - left, bottom - top
    if wide > _LYING * high:
        return [(left, top, left + _HEAD_END * wide, bottom), (right - _HEAD_END * wide, top, right, bottom)]
    middle, half = (left + right) / 2, max(_HEAD_WIDE * wide, _HEAD_HIGH * high) / 2
    return [(middle - half, top, middle + half, top + max(_HEAD_HIGH * high, 2 * half * 0.8))]
