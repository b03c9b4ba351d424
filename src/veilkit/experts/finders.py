"""Face finders by name: where the faces of a picture are, with five points each.

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

import numpy as np
import torch
from torch import Tensor

from veilkit.errors import CheckpointError, ConfigError, UnknownNameError
from veilkit.experts.alignment import WIDE
from veilkit.experts.base import Detections, Detector, ExpertInfo, check_images
from veilkit.experts.digest import file_sha256
from veilkit.lookup import Lookup, unknown_name

HEAD = (0.25, 0.0, 0.75, 0.22)
"""Left, top, right, bottom of the head of a standing person's crop, as shares of its sides (as the control mask)."""


@dataclass(frozen=True, slots=True)
class FaceSettings:
    """How faces are found in a picture, and what happens where that fails.

    finder: `whole` (the picture is an aligned crop), `head` (a standing person's crop), or the path of YuNet's ONNX
    file. second: another finder that looks for faces which the first has missed, or `none`.
    hide: what a face gets that cannot be changed, or that only the second finder saw: `mask` (black) or `pixelate`
    (4 cells a side). unfound: what a picture gets in which no face was found: `pixelate` (8 cells along its shorter
    side), or `keep`, which releases it as it is.
    """

    finder: str = ""
    second: str = "none"
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
        return _info(self._name, digest, "Apache-2.0", "a fixed place; no weights")

    def detect(self, images: Tensor) -> list[Detections]:
        """One face in each of (N, 3, H, W)."""
        check_images(images)
        height, width = images.shape[2:]
        sides = torch.tensor([width, height, width, height])
        box = torch.tensor(self._box) * sides
        template = WIDE["five"]
        points = box[:2] + torch.tensor(template.points) / template.side * (box[2:] - box[:2])
        return [Detections(box[None], torch.ones(1), points[None])] * len(images)


class YuNetFinder(Detector):
    """YuNet (Wu et al. 2023), an ONNX file of OpenCV's model zoo, through OpenCV: no extra is needed.

    score: faces that the network is less sure of are left out. longest: larger pictures are shrunk to this side, as
    the network misses faces much larger than those it was trained on.
    """

    def __init__(self, path: Path, *, score: float = 0.6, longest: int = 640) -> None:
        self._path, self._score, self._longest = Path(path), score, longest
        self._sha256 = file_sha256(self._path)

    @property
    def info(self) -> ExpertInfo:
        """Who this finder is."""
        return _info("yunet", self._sha256, "not stated", f"score {self._score:g}, longest side {self._longest}")

    def detect(self, images: Tensor) -> list[Detections]:
        """The faces of (N, 3, H, W), the surest first."""
        check_images(images)
        return [self._one(image) for image in images]

    def _one(self, image: Tensor) -> Detections:
        import cv2  # only who looks for faces has to pay for it

        cv2.utils.logging.setLogLevel(cv2.utils.logging.LOG_LEVEL_ERROR)  # it warns of its own engine each time
        make = cv2.FaceDetectorYN.create
        pixels = np.ascontiguousarray((image.flip(0).permute(1, 2, 0) * 255).round().clamp(0, 255).byte().numpy())
        scale = min(1.0, self._longest / max(pixels.shape[:2]))
        if scale < 1:
            small = max(1, round(pixels.shape[1] * scale)), max(1, round(pixels.shape[0] * scale))
            pixels = cv2.resize(pixels, small, interpolation=cv2.INTER_AREA)
        back = np.array([image.shape[2] / pixels.shape[1], image.shape[1] / pixels.shape[0]], np.float32)
        try:
            network = make(str(self._path), "", (pixels.shape[1], pixels.shape[0]), self._score)
            found = network.detect(pixels)[1]
        except cv2.error as error:
            raise CheckpointError(
                f"{self._path.name}: OpenCV cannot find faces with it ({str(error).partition(chr(10))[0]}); expected "
                "YuNet's ONNX file, face_detection_yunet_2023mar.onnx of OpenCV's model zoo"
            ) from None
        rows = np.zeros((0, 15), np.float32) if found is None else np.asarray(found, np.float32)
        corners = np.concatenate([rows[:, :2], rows[:, :2] + rows[:, 2:4]], axis=1).reshape(-1, 2, 2) * back
        points = rows[:, 4:14].reshape(-1, 5, 2) * back
        return Detections(
            torch.from_numpy(corners.reshape(-1, 4)), torch.from_numpy(rows[:, 14].copy()), torch.from_numpy(points)
        )


FINDERS: Lookup[Callable[[], Detector]] = Lookup(
    "face finder",
    [
        ("whole", lambda: FixedFinder("whole", (0.0, 0.0, 1.0, 1.0))),
        ("head", lambda: FixedFinder("head", HEAD)),
    ],
)


def load_finder(name_or_path: str) -> Detector:
    """A finder of the table, or YuNet from the path of its ONNX file."""
    if name_or_path in FINDERS:
        return FINDERS[name_or_path]()
    if name_or_path.endswith(".onnx"):
        return YuNetFinder(Path(name_or_path))
    if not name_or_path:
        raise ConfigError(
            "this needs to know how faces are found: finder=PATH of YuNet's ONNX file (OpenCV's model zoo has it) "
            "for photographs, finder=whole for aligned crops of faces, finder=head for crops of standing people"
        )
    known = unknown_name("face finder", name_or_path, FINDERS)
    raise UnknownNameError(f"{known}, or the path of YuNet's ONNX file")


def _info(name: str, sha256: str, licence: str, source: str) -> ExpertInfo:
    return ExpertInfo(
        name=name, kind="detector", dim=0, sha256=sha256, differentiable=False, licence=licence, source=source,
        origin="built-in",
    )  # fmt: skip
