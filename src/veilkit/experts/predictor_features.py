"""A differentiable predictor (landmarks, gaze, expression) as an embedder, so that it can supervise."""

from __future__ import annotations

from dataclasses import replace

from torch import Tensor

from veilkit.errors import ConfigError
from veilkit.experts.base import Embedder, ExpertInfo, Predictor
from veilkit.experts.face_attributes import FaceAttributePredictor


class PredictorFeatures(Embedder):
    """The last features before the answer of a network of ours; of other predictors the answer, one row per image.

    Such an answer must be that of the last layer before any softmax, with as many numbers for each image as the
    predictor's info says, and gradients must reach the images through it.
    """

    def __init__(self, predictor: Predictor) -> None:
        if not predictor.differentiable:
            raise ConfigError(f"the predictor {predictor.name!r} can judge, but not supervise: take a torch one")
        self._predictor = predictor

    @property
    def info(self) -> ExpertInfo:
        """Who the predictor is."""
        info = replace(self._predictor.info, kind="embedder")
        if isinstance(self._predictor, FaceAttributePredictor):
            return replace(info, dim=self._predictor.feature_dim)
        return info

    def embed(self, images: Tensor) -> Tensor:
        """(N, 3, H, W) -> (N, D)."""
        if isinstance(self._predictor, FaceAttributePredictor):
            return self._predictor.features(images)
        return self._predictor.predict(images).flatten(1)
