"""Face finders by name: where the faces of a picture are, and their points.

A face finder is a `Detector` that tells points in one of the orders that `Detections` knows. It must answer for
pictures of any size, each by itself, and may put points outside of the picture. Without any weights there are two
that look at no pixel: `whole` for pictures that are aligned crops, `head` for crops of standing people.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import torch
from torch import Tensor

from veilkit.errors import MissingExtraError, UnknownNameError
from veilkit.experts.alignment import WIDE
from veilkit.experts.base import Detections, Detector, ExpertInfo, check_images
from veilkit.experts.dlib_faces import DlibDetector
from veilkit.experts.faces import DETECTORS
from veilkit.experts.thorough import ThoroughFinder
from veilkit.experts.yunet import YuNet
from veilkit.lookup import Lookup, unknown_name

HEAD = (0.25, 0.0, 0.75, 0.22)
"""Left, top, right, bottom of the head of a standing person's crop, as shares of its sides (as the control mask)."""
_DLIB_DOUBTFUL = -0.75  # the classifier's margin
_YUNET_CERTAIN, _YUNET_DOUBTFUL = 0.6, 0.3
_OTHERWISE = (
    "set finder to the path of YuNet's ONNX file (OpenCV's model zoo has it), to whole for aligned crops of faces, "
    "or to head for crops of standing people"
)


@dataclass(frozen=True, slots=True)
class FaceSettings:
    """How faces are found in a picture, and what happens where that fails.

    finder: `dlib` (extra faces), `whole` (the picture is an aligned crop), `head` (a standing person's crop), another
    of `faces.DETECTORS`, or the path of YuNet's ONNX file. second: who looks for faces that the first has missed, and
    for what may be one, in the picture turned four ways and mirrored beyond its edges: a detector of that table, a
    path as before, `auto` (the same detector as the first; nobody where that looks at no pixel) or `none`. hide: what
    a face gets that cannot be changed, or that only the second finder saw, and what may be a face: `mask` (black) or
    `pixelate` (4 cells a side). unfound: what a picture gets in which no face was found: `pixelate` (8 cells along
    its shorter side), or `keep`, which releases it as it is, but for what may be a face.
    """

    finder: str = "dlib"
    second: str = "auto"
    hide: Literal["mask", "pixelate"] = "mask"
    unfound: Literal["pixelate", "keep"] = "pixelate"


class FixedFinder(Detector):
    """Says of every picture that one face is in one place: a box in shares of the sides, with points as aligned."""

    def __init__(self, name: str, box: tuple[float, float, float, float]) -> None:
        self._name, self._box = name, box

    @property
    def info(self) -> ExpertInfo:
        """Who this finder is."""
        digest = hashlib.sha256(f"{self._name} {self._box}".encode()).hexdigest()
        return ExpertInfo(
            name=self._name,
            kind="detector",
            dim=0,
            sha256=digest,
            differentiable=False,
            licence="Apache-2.0",
            source="a fixed place; no weights",
            origin="built-in",
        )

    def detect(self, images: Tensor) -> list[Detections]:
        """One face in each of (N, 3, H, W)."""
        check_images(images)
        height, width = images.shape[2:]
        sides = torch.tensor([width, height, width, height])
        box = torch.tensor(self._box) * sides
        template = WIDE["five"]
        points = box[:2] + torch.tensor(template.points) / template.side * (box[2:] - box[:2])
        return [Detections(box[None], torch.ones(1), points[None])] * len(images)


FINDERS: Lookup[Callable[[], Detector]] = Lookup(
    "face finder",
    [
        ("whole", lambda: FixedFinder("whole", (0.0, 0.0, 1.0, 1.0))),
        ("head", lambda: FixedFinder("head", HEAD)),
    ],
)


def load_finder(name_or_path: str) -> Detector:
    """A finder of the table, a detector of `faces.DETECTORS`, or YuNet from the path of its ONNX file."""
    if name_or_path.endswith(".onnx"):
        return YuNet.load(Path(name_or_path))
    if name_or_path in FINDERS:
        return FINDERS[name_or_path]()
    if name_or_path not in DETECTORS:
        known = unknown_name("face finder", name_or_path, {**FINDERS, **DETECTORS})
        raise UnknownNameError(f"{known}, or the path of YuNet's ONNX file")
    finder = DETECTORS[name_or_path]()
    try:
        _ = finder.info  # what is missing is told now, and not at the first picture
    except MissingExtraError as error:
        raise error.instead(_OTHERWISE) from None
    return finder


def load_second(name_or_path: str, first: str) -> Detector | None:
    """The finder that looks again, thoroughly, and tells what may be a face; `first` names the one before it.

    dlib's margin of -0.75 and YuNet's 0.3 were chosen on the scenes of `benchmarks/face_composites.py --others`,
    whose people are not those of its claims: there most half faces are found, and few other things.
    """
    name = first if name_or_path == "auto" else name_or_path
    if name == "none" or (name_or_path == "auto" and name in FINDERS):
        return None
    if name == "yunet" or name.endswith(".onnx"):
        path = Path(name) if name.endswith(".onnx") else None
        return ThoroughFinder(YuNet.load(path, threshold=_YUNET_DOUBTFUL), certain=_YUNET_CERTAIN)
    finder = load_finder(name)
    if isinstance(finder, DlibDetector):
        return ThoroughFinder(finder.doubting(_DLIB_DOUBTFUL), certain=0.5)
    return finder
