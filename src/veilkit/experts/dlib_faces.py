"""dlib's face detector and landmarks as experts (extra: faces). They judge; no gradient passes them."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any, Literal

import torch
from torch import Tensor

from veilkit.errors import ConfigError
from veilkit.experts.base import (
    Detections,
    ExpertInfo,
    PointOrder,
    Predictor,
    refuse_gradient,
)
from veilkit.experts.dlib_files import LICENCES, POINTS_5, POINTS_68, dlib_model, import_dlib
from veilkit.experts.names import file_sha256
from veilkit.experts.pixel_detector import PixelDetector, Pixels, as_pixels, resized
from veilkit.experts.search_size import search_size

Count = Literal[5, 68]
_MODELS: dict[Count, str] = {5: POINTS_5, 68: POINTS_68}
_MOST_PIXELS = 16_000_000  # doubled, they take 800 MB
_ORDERS: dict[Count, PointOrder] = {5: "dlib-5", 68: "68"}


class DlibDetector(PixelDetector):
    """Histograms of gradients and a linear classifier (dlib's frontal face detector), then landmarks in each box.

    points: 68 in the order of iBUG; or 5, which are dlib's own: outer and inner corner of the eye on the right of the
    picture, then of the left one, and the base of the nose. enlarged: how often the picture is doubled before the
    search, which finds faces from 80 pixels on undoubled, from 40 when doubled once. threshold: the least margin of
    the classifier. Pictures of more than 16 megapixels are shrunk to that for the search; in one narrower than 8
    pixels, before or after, none is made, as dlib dies on such shapes.
    """

    def __init__(self, points: Count = 5, *, enlarged: int = 1, threshold: float = 0.0) -> None:
        if points not in _MODELS or not 0 <= enlarged <= 3:
            raise ConfigError(f"points must be 5 or 68 and enlarged 0 to 3, but got {points} and {enlarged}")
        self._points, self._enlarged, self._threshold = points, enlarged, threshold
        self._loaded: tuple[Any, Any, Any, Path] | None = None

    @property
    def info(self) -> ExpertInfo:
        """Who this expert is; its hash is that of dlib's version and of the landmarks' file."""
        dlib, _, _, file = self._parts()
        facts = (
            f"dlib {dlib.__version__} frontal face detector {self._enlarged} {self._threshold} {file_sha256(file)}"
        )
        return ExpertInfo(
            name="dlib" if self._points == 5 else "dlib-68",
            kind="detector",
            dim=0,
            sha256=hashlib.sha256(facts.encode()).hexdigest(),
            differentiable=False,
            licence=f"Boost Software License 1.0; landmarks: {LICENCES[_MODELS[self._points]]}",
            source="dlib and face_recognition_models",
            origin="built-in",
        )

    def __getstate__(self) -> dict[str, Any]:
        """Worker processes load dlib's parts themselves; they cannot be sent."""
        return {**self.__dict__, "_loaded": None}

    def doubting(self, threshold: float) -> DlibDetector:
        """The same detector, from another margin of the classifier on."""
        return DlibDetector(self._points, enlarged=self._enlarged, threshold=threshold)

    def points_in(self, image: Tensor, box: Tensor) -> Tensor:
        """(P, 2) in a picture (3, H, W) in [0, 1] whose face is known to fill a box (4,), as dlib draws boxes."""
        return self._shape(as_pixels(image), self._rectangle(box.tolist()))

    def find(self, pixels: Pixels) -> Detections:
        """The faces of a picture (H, W, 3), surest first.

        A score is the logistic function of the classifier's margin, so that it is 0.5 where that is 0.
        """
        height, width = pixels.shape[:2]
        size = search_size(height, width, _MOST_PIXELS >> 2 * max(0, self._enlarged - 1))
        boxes, scores, points = torch.zeros(0, 4), torch.zeros(0), torch.zeros(0, self._points, 2)
        if size is not None:
            pixels = resized(pixels, size)
            found, margins, _ = self._parts()[1].run(pixels, self._enlarged, self._threshold)
            back = torch.tensor([width / size[1], height / size[0]])
            if len(found):
                edges = [[r.left(), r.top(), r.right() + 1, r.bottom() + 1] for r in found]
                boxes = torch.tensor(edges, dtype=torch.float32) * back.repeat(2)
                scores = torch.tensor(list(margins), dtype=torch.float32).sigmoid()
                points = torch.stack([self._shape(pixels, r) for r in found]) * back
        return Detections(boxes, scores, points, _ORDERS[self._points])

    def _rectangle(self, box: list[float]) -> Any:
        left, top, right, bottom = (round(edge) for edge in box)
        return self._parts()[0].rectangle(left, top, right - 1, bottom - 1)

    def _shape(self, pixels: Pixels, rectangle: Any) -> Tensor:
        """dlib counts from the middle of the first pixel, we from its corner."""
        shape = self._parts()[2](pixels, rectangle)
        return torch.tensor([(p.x + 0.5, p.y + 0.5) for p in shape.parts()], dtype=torch.float32)

    def _parts(self) -> tuple[Any, Any, Any, Path]:
        if self._loaded is None:
            dlib, file = import_dlib(), dlib_model(_MODELS[self._points])
            self._loaded = dlib, dlib.get_frontal_face_detector(), dlib.shape_predictor(str(file)), file
        return self._loaded


class DlibLandmarks(Predictor):
    """Landmarks of the largest face that dlib finds in each image; NaN where it finds none."""

    def __init__(self, points: Count = 68, *, enlarged: int = 1) -> None:
        self._detector, self._points = DlibDetector(points, enlarged=enlarged), points

    @property
    def info(self) -> ExpertInfo:
        """Who this expert is."""
        detector = self._detector.info
        return ExpertInfo(
            name=f"dlib-landmarks-{self._points}",
            kind="predictor",
            dim=2 * self._points,
            sha256=detector.sha256,
            differentiable=False,
            licence=detector.licence,
            source=detector.source,
            origin="built-in",
        )

    def predict(self, images: Tensor) -> Tensor:
        """float32 (N, 3, H, W) in [0, 1] -> (N, 68 or 5, 2) as x, y in pixels."""
        refuse_gradient(images, self)
        found = self._detector.detect(images)
        points = torch.full((len(found), self._points, 2), torch.nan)
        for place, each in enumerate(found):
            if (face := each.largest()) is not None:
                points[place] = each.points[face]
        return points
