"""YuNet (Wu et al. 2023), a small face detector with five points, from its ONNX file (extra: onnx). It judges.

The network answers for each cell of three grids, of 8, 16 and 32 pixels: how sure it is that there is a face, and
where the face's box and points are, in cells from the cell's left top corner.
"""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from veilkit.errors import CheckpointError, MissingExtraError
from veilkit.experts.base import Detections, Detector, ExpertInfo, check_images, refuse_gradient
from veilkit.experts.digest import file_sha256
from veilkit.experts.weights_folder import weights_file

FILE = "yunet.onnx"
_CELLS = (8, 16, 32)
_PARTS = ("cls", "obj", "bbox", "kps")
_OVERLAP = 0.3  # of two boxes (intersection over union), beyond which the less sure one is dropped


class YuNet(Detector):
    """Eyes, tip of the nose and corners of the mouth, each from the left of the picture; threshold: least score."""

    def __init__(self, path: Path, *, threshold: float = 0.6) -> None:
        self._path, self._threshold = Path(path), threshold
        self._session: Any = None

    @classmethod
    def load(cls, path: Path | None = None, *, threshold: float = 0.6) -> YuNet:
        """From its file; without a path, from the folder of weights."""
        return cls(weights_file(FILE) if path is None else path, threshold=threshold)

    @property
    def info(self) -> ExpertInfo:
        """Who this expert is."""
        return ExpertInfo(
            name="yunet",
            kind="detector",
            dim=0,
            sha256=file_sha256(self._path),
            differentiable=False,
            licence="MIT",
            source="OpenCV's model zoo, YuNet",
            origin="file",
        )

    def detect(self, images: Tensor) -> list[Detections]:
        """float32 (N, 3, H, W) in [0, 1] -> the faces of each image, surest first."""
        check_images(images)
        refuse_gradient(images, self)
        return [self._detect_one(image[None]) for image in images.detach()]

    def _detect_one(self, image: Tensor) -> Detections:
        height, width = image.shape[2:]
        padded = F.pad(image, (0, -width % _CELLS[-1], 0, -height % _CELLS[-1]))
        blob = padded.flip(1).mul(255).contiguous().numpy()
        session = self._opened()
        names = [f"{part}_{cell}" for cell in _CELLS for part in _PARTS]
        answers = dict(zip(names, session.run(names, {session.get_inputs()[0].name: blob}), strict=True))
        grids = [
            decoded(
                [torch.from_numpy(answers[f"{part}_{cell}"])[0] for part in _PARTS], cell, padded.shape[3] // cell
            )
            for cell in _CELLS
        ]
        found = Detections(*(torch.cat([getattr(g, part) for g in grids]) for part in ("boxes", "scores", "points")))
        kept = distinct(found.boxes, found.scores, self._threshold)
        return Detections(found.boxes[kept], found.scores[kept], found.points[kept])

    def _opened(self) -> Any:
        if self._session is None:
            try:
                runtime = importlib.import_module("onnxruntime")
            except ImportError:
                raise MissingExtraError("onnxruntime", "onnx") from None
            options = runtime.SessionOptions()
            options.intra_op_num_threads = options.inter_op_num_threads = 1
            options.log_severity_level = 4
            try:
                session = runtime.InferenceSession(str(self._path), options, providers=["CPUExecutionProvider"])
            except Exception as error:  # onnxruntime's errors share no base class of their own
                raise CheckpointError(f"{self._path.name}: onnxruntime cannot open it: {error}") from None
            outputs = {output.name for output in session.get_outputs()}
            if not {f"{part}_{cell}" for cell in _CELLS for part in _PARTS} <= outputs:
                raise CheckpointError(f"{self._path.name}: expected YuNet's outputs, but got {sorted(outputs)}")
            self._session = session
        return self._session


def decoded(answers: Sequence[Tensor], cell: int, columns: int) -> Detections:
    """The answers of one grid of cells, row by row: (C, 1), (C, 1), (C, 4) and (C, 10) -> C candidates.

    A box is its middle and the logarithms of its sides. A score is the mean, in the geometric sense, of two.
    """
    face, there, box, points = answers
    place = torch.arange(len(face))
    corner = torch.stack([place % columns, place // columns], 1).float()
    middle, sides = (corner + box[:, :2]) * cell, box[:, 2:].exp() * cell
    scores = (face.clamp(0, 1) * there.clamp(0, 1)).sqrt()[:, 0]
    boxes = torch.cat([middle - sides / 2, middle + sides / 2], 1)
    return Detections(boxes, scores, (points.view(-1, 5, 2) + corner[:, None]) * cell)


def distinct(boxes: Tensor, scores: Tensor, threshold: float, overlap: float = _OVERLAP) -> list[int]:
    """Which boxes (K, 4) to keep, surest first: those above the threshold that no surer one overlaps much."""
    kept: list[int] = []
    areas = (boxes[:, 2:] - boxes[:, :2]).prod(1)
    for place in scores.argsort(descending=True, stable=True).tolist():
        if scores[place] < threshold:
            break
        low, high = torch.maximum(boxes[place, :2], boxes[kept, :2]), torch.minimum(boxes[place, 2:], boxes[kept, 2:])
        shared = (high - low).clamp_min(0).prod(1)
        if not (shared > overlap * (areas[place] + areas[kept] - shared)).any():
            kept.append(place)
    return kept
