"""A differentiable predictor (landmarks, gaze, expression) as an embedder, so that it can supervise."""

from __future__ import annotations

from dataclasses import replace

from torch import Tensor

from veilkit.errors import ConfigError
from veilkit.experts.base import Embedder, ExpertInfo, Predictor


class PredictorFeatures(Embedder):
    """What a predictor says, in one row per image.

    Its answer must be that of its last layer before any softmax, with as many numbers for each image as its info
    says, and gradients must reach the images through it.
    """

    def __init__(self, predictor: Predictor) -> None:
        if not predictor.differentiable:
            raise ConfigError(f"the predictor {predictor.name!r} can judge, but not supervise: take a torch one")
        self._predictor = predictor

    @property
    def info(self) -> ExpertInfo:
        """Who the predictor is."""
        return replace(self._predictor.info, kind="embedder")

    def embed(self, images: Tensor) -> Tensor:
        """(N, 3, H, W) -> (N, D)."""
        return self._predictor.predict(images).flatten(1)
