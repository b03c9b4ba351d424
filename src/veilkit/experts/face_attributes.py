"""Landmarks, gaze and expression by veilkit's own network: torch predictors that judge and supervise."""

from __future__ import annotations

import copy
from pathlib import Path

import torch
from torch import Tensor

from veilkit.experts.base import ExpertInfo, Origin, Predictor, check_images
from veilkit.experts.names import file_sha256, packaged_weights
from veilkit.experts.preprocessing import NORMALISATIONS, Preprocessing
from veilkit.networks.face_attributes import FaceAttributes, Head, load_face_attributes


class FaceAttributePredictor(Predictor):
    """What one head says of pictures of one upright face, which fills a good part of the picture.

    The network is copied, frozen and set to evaluation mode. batch_size: images that go through it at a time.
    """

    def __init__(self, network: FaceAttributes, head: Head, info: ExpertInfo, *, batch_size: int = 64) -> None:
        self._head, self._info, self._batch_size = head, info, batch_size
        self._network = copy.deepcopy(network).eval().requires_grad_(False)

    @classmethod
    def load(cls, path: Path, head: Head, *, origin: Origin = "file", card: str = "") -> FaceAttributePredictor:
        """One head of a file that `veilkit train face-attributes` wrote."""
        path = Path(path)
        network, teachers = load_face_attributes(path)
        config = network.config
        length = {"landmarks": 136, "gaze": 2, "expression": len(config.expressions)}[head]
        info = ExpertInfo(
            name=head,
            kind="predictor",
            dim=length,
            sha256=file_sha256(path),
            differentiable=True,
            licence="Apache-2.0" if origin == "built-in" else "not stated",
            source=f"trained by veilkit on {teachers[head] or 'nothing'}",
            origin=origin,
            preprocessing=Preprocessing((config.side, config.side), *NORMALISATIONS["signed"]),
            card=card,
        )
        return cls(network, head, info)

    @property
    def info(self) -> ExpertInfo:
        """Who this expert is."""
        return self._info

    @property
    def feature_dim(self) -> int:
        """D, the length of `features`."""
        return self._network.config.hidden

    @property
    def classes(self) -> tuple[str, ...]:
        """Names of the expressions, in the order of the prediction."""
        return self._network.config.expressions

    def predict(self, images: Tensor) -> Tensor:
        """float32 (N, 3, H, W) in [0, 1] -> what the head says; gradients reach the images.

        landmarks: (N, 68, 2) as x, y in pixels. gaze: (N, 2), yaw to the right of the picture and pitch up, in
        degrees before the camera. expression: (N, classes), probabilities.
        """
        check_images(images)
        found = [self._network.predict(chunk, self._head) for chunk in self._chunks(images)]
        answer = torch.cat(found)
        if self._head == "landmarks":
            return answer * answer.new_tensor([images.shape[3], images.shape[2]])
        return answer.softmax(1) if self._head == "expression" else answer

    def features(self, images: Tensor) -> Tensor:
        """float32 (N, 3, H, W) in [0, 1] -> (N, D), the last features before the answer, for losses on them."""
        check_images(images)
        return torch.cat([self._network.features(chunk, self._head) for chunk in self._chunks(images)])

    def _chunks(self, images: Tensor) -> tuple[Tensor, ...]:
        return torch.split(images, self._batch_size) if len(images) else (images,)


def load_packaged(head: Head) -> FaceAttributePredictor:
    """One head of the packaged network, trained on generated faces."""
    with packaged_weights("faces", head) as (path, card):
        return FaceAttributePredictor.load(path, head, origin="built-in", card=card)
