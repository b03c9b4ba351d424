"""Gaze, head pose and five landmarks by Intel's networks in OpenVINO's form (extra: openvino). They judge.

Each predictor takes pictures of any size, works on the largest face that YuNet finds, and says NaN where there is
none.
"""

from __future__ import annotations

import importlib
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from veilkit.errors import CheckpointError, MissingExtraError
from veilkit.experts.alignment import similarity, warp
from veilkit.experts.base import Detections, ExpertInfo, Predictor, check_images, refuse_gradient
from veilkit.experts.names import file_sha256, weights_file
from veilkit.experts.yunet import YuNet

What = Literal["gaze", "head-pose", "landmarks"]
_GAZE, _POSE = "gaze-estimation-adas-0002", "head-pose-estimation-adas-0001"
_POINTS = "landmarks-regression-retail-0009"
_MODEL: dict[What, str] = {"gaze": _GAZE, "head-pose": _POSE, "landmarks": _POINTS}
_LENGTH: dict[What, int] = {"gaze": 2, "head-pose": 3, "landmarks": 10}
_EYE_SIDE, _POSE_SIDE, _POINTS_SIDE = 60, 60, 48
_EYE_BOX = 0.73  # side of an eye's crop, of the distance between the eyes: 1.8 times an eye's width


class OpenVinoFace(Predictor):
    """One of the three networks; gaze asks the two others for the head's pose and the eyes."""

    def __init__(self, what: What, detector: YuNet, models: dict[str, Path]) -> None:
        self._what, self._detector, self._models = what, detector, models
        self._opened: dict[str, Any] = {}

    @classmethod
    def load(cls, what: What) -> OpenVinoFace:
        """From the folder of weights."""
        names = (_GAZE, _POSE, _POINTS) if what == "gaze" else (_MODEL[what],)
        for name in names:
            weights_file(f"{name}.bin")
        return cls(what, YuNet.load(), {name: weights_file(f"{name}.xml") for name in names})

    @property
    def info(self) -> ExpertInfo:
        """Who this expert is; its hash is that of the network's weights."""
        return ExpertInfo(
            name=f"openvino-{self._what}",
            kind="predictor",
            dim=_LENGTH[self._what],
            sha256=file_sha256(self._models[_MODEL[self._what]].with_suffix(".bin")),
            differentiable=False,
            licence="Apache-2.0",
            source=f"Open Model Zoo, {_MODEL[self._what]}; faces by YuNet",
            origin="file",
        )

    def predict(self, images: Tensor) -> Tensor:
        """float32 (N, 3, H, W) in [0, 1] -> one row per image, NaN where no face is found.

        gaze: (N, 2), yaw to the right of the picture and pitch up, in degrees before the camera. head-pose: (N, 3),
        yaw, pitch and roll of the same signs, roll clockwise. landmarks: (N, 5, 2) in pixels, as YuNet's.
        """
        check_images(images)
        refuse_gradient(images, self)
        rows = [
            self._predict_one(image[None], found)
            for image, found in zip(images.detach(), self._detector.detect(images), strict=True)
        ]
        shape = (5, 2) if self._what == "landmarks" else (_LENGTH[self._what],)
        return torch.stack(rows) if rows else torch.zeros(0, *shape)

    def _predict_one(self, image: Tensor, found: Detections) -> Tensor:
        place = found.largest()
        if place is None:
            return torch.full((5, 2) if self._what == "landmarks" else (_LENGTH[self._what],), torch.nan)
        answers: dict[What, Callable[[Tensor, Tensor], Tensor]] = {
            "gaze": self._gaze,
            "head-pose": self._pose,
            "landmarks": self._landmarks,
        }
        return answers[self._what](image, found.boxes[place])

    def _pose(self, image: Tensor, box: Tensor) -> Tensor:
        matrix = _square(box, _POSE_SIDE)
        out = self._run(_POSE, {"data": _blob(image, matrix, _POSE_SIDE)})
        yaw, pitch, roll = (float(out[name].item()) for name in ("angle_y_fc", "angle_p_fc", "angle_r_fc"))
        return torch.tensor([yaw, -pitch, roll])  # the network's pitch is positive downwards

    def _landmarks(self, image: Tensor, box: Tensor) -> Tensor:
        matrix = _square(box, _POINTS_SIDE)
        (out,) = self._run(_POINTS, {"0": _blob(image, matrix, _POINTS_SIDE)}).values()
        corner, sides = _corner(box)
        return corner + torch.from_numpy(out.reshape(5, 2).astype(np.float32)) * sides

    def _gaze(self, image: Tensor, box: Tensor) -> Tensor:
        """Both eyes are turned upright, and the answer is turned back."""
        yaw, pitch, _ = self._pose(image, box).tolist()
        points = self._landmarks(image, box)
        across = points[1] - points[0]
        roll = math.atan2(float(across[1]), float(across[0]))
        side = _EYE_BOX * float(across.norm())
        eyes = [_blob(image, _upright(eye, side, roll), _EYE_SIDE) for eye in points[:2]]
        inputs = {
            "right_eye_image": eyes[0],
            "left_eye_image": eyes[1],
            "head_pose_angles": np.array([[yaw, -pitch, 0.0]], np.float32),
        }
        x, y, z = (float(part) for part in self._run(_GAZE, inputs)["gaze_vector"].reshape(3))
        x, y = x * math.cos(roll) + y * math.sin(roll), y * math.cos(roll) - x * math.sin(roll)
        length = math.sqrt(x * x + y * y + z * z)
        return torch.tensor([math.degrees(math.atan2(x, -z)), math.degrees(math.asin(y / length))])

    def _run(self, name: str, inputs: dict[str, NDArray[np.float32]]) -> dict[str, NDArray[np.float32]]:
        if name not in self._opened:
            self._opened[name] = compiled(self._models[name])
        network = self._opened[name]
        out = network(inputs)
        return {output.any_name: np.asarray(out[output]) for output in network.outputs}


def _corner(box: Tensor) -> tuple[Tensor, Tensor]:
    return box[:2], box[2:] - box[:2]


def _square(box: Tensor, side: int) -> Tensor:
    """(1, 2, 3): a box to side x side, each of its sides by itself, as the networks were trained."""
    corner, sides = _corner(box)
    scale = side / sides
    return torch.cat([torch.diag(scale), (-corner * scale)[:, None]], 1)[None]


def _upright(middle: Tensor, side: float, roll: float) -> Tensor:
    """(1, 2, 3): the square of `side` pixels around `middle`, leaning by `roll`, to the size of an eye's crop."""
    along = torch.tensor([math.cos(roll), math.sin(roll)]) * side / 2
    ends = torch.stack([middle - along, middle + along])[None]
    half = _EYE_SIDE / 2
    return similarity(ends, torch.tensor([[0.0, half], [float(_EYE_SIDE), half]]))


def _blob(image: Tensor, matrix: Tensor, side: int) -> NDArray[np.float32]:
    """(1, 3, side, side), blue first, in [0, 255]."""
    return np.ascontiguousarray(warp(image, matrix, (side, side)).mul(255).flip(1).numpy())


def compiled(path: Path) -> Any:
    """A network of OpenVINO, for one thread."""
    try:
        openvino = importlib.import_module("openvino")
    except ImportError:
        raise MissingExtraError("openvino", "openvino") from None
    try:
        core = openvino.Core()
        return core.compile_model(core.read_model(path), "CPU", {"INFERENCE_NUM_THREADS": 1})
    except RuntimeError as error:
        raise CheckpointError(f"{path.name}: OpenVINO cannot open it: {str(error).splitlines()[0]}") from None
