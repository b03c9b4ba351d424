"""YuNet (Wu et al. 2023), a small face detector with five points, from its ONNX file. It finds faces, and it judges.

OpenCV runs it, so that no extra is needed.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray

from veilkit.errors import CheckpointError
from veilkit.experts.base import Detections, ExpertInfo
from veilkit.experts.names import file_sha256, weights_file
from veilkit.experts.pixel_detector import PixelDetector, Pixels, nothing, resized
from veilkit.experts.search_size import LEAST_SIDE

FILE = "yunet.onnx"


class YuNet(PixelDetector):
    """Eyes, tip of the nose and corners of the mouth, each pair from the left of the picture.

    threshold: faces that the network is less sure of are left out. longest: larger pictures are shrunk to this side,
    as the network misses faces much larger than those it was trained on. In a picture that is then narrower than 8
    pixels it is not asked.
    """

    def __init__(self, path: Path, sha256: str, *, threshold: float = 0.6, longest: int = 640) -> None:
        self._path, self._sha256, self._threshold, self._longest = path, sha256, threshold, longest

    @classmethod
    def load(cls, path: Path | None = None, *, threshold: float = 0.6, longest: int = 640) -> YuNet:
        """From its file; without a path, from the folder of weights."""
        path = weights_file(FILE) if path is None else Path(path)
        return cls(path, file_sha256(path), threshold=threshold, longest=longest)

    @property
    def info(self) -> ExpertInfo:
        """Who this expert is."""
        return ExpertInfo(
            name="yunet",
            kind="detector",
            dim=0,
            sha256=self._sha256,
            differentiable=False,
            licence="MIT",
            source="OpenCV's model zoo, YuNet",
            origin="file",
        )

    def find(self, pixels: Pixels) -> Detections:
        """The faces of a picture (H, W, 3), surest first."""
        height, width = pixels.shape[:2]
        scale = min(1.0, self._longest / max(height, width))
        if round(min(height, width) * scale) < LEAST_SIDE:
            return nothing(5)
        pixels = np.ascontiguousarray(pixels[:, :, ::-1])
        if scale < 1:
            pixels = resized(pixels, (max(1, round(height * scale)), max(1, round(width * scale))))
        rows = self._rows(pixels)
        back = np.array([width / pixels.shape[1], height / pixels.shape[0]], np.float32)
        corners = np.stack([rows[:, :2], rows[:, :2] + rows[:, 2:4]], 1) * back
        return Detections(
            boxes=torch.from_numpy(corners.reshape(-1, 4)),
            scores=torch.from_numpy(rows[:, 14].copy()),
            points=torch.from_numpy(rows[:, 4:14].reshape(-1, 5, 2) * back),
        )

    def _rows(self, pixels: Pixels) -> NDArray[np.float32]:
        """OpenCV's answer for a picture in blue, green, red: (K, 15), box, five points and score of each face."""
        import cv2  # only who looks for faces has to pay for it

        cv2.utils.logging.setLogLevel(cv2.utils.logging.LOG_LEVEL_ERROR)  # it warns of its own engine each time
        try:
            network = cv2.FaceDetectorYN.create(
                str(self._path), "", (pixels.shape[1], pixels.shape[0]), self._threshold
            )
            found = network.detect(pixels)[1]
        except cv2.error as error:
            raise CheckpointError(
                f"{self._path.name}: OpenCV cannot find faces with it ({str(error).partition(chr(10))[0]}); expected "
                "YuNet's ONNX file, face_detection_yunet_2023mar.onnx of OpenCV's model zoo"
            ) from None
        return np.zeros((0, 15), np.float32) if found is None else np.asarray(found, np.float32)
