"""What a Disguise model sees in whole pictures."""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch import Tensor

from veilkit.experts.base import Embedder, ExpertInfo
from veilkit.methods.faces.method import found_faces

if TYPE_CHECKING:
    from veilkit.methods.disguise.method import Disguise


class OwnIdentity(Embedder):
    """Who the largest face of a picture is to the model's own experts; zeros where none is found."""

    def __init__(self, method: Disguise) -> None:
        self._method = method

    @property
    def info(self) -> ExpertInfo:
        """The model's, for its experts, their joining and the alignment are parts of it."""
        method = self._method
        return ExpertInfo(
            name="disguise-identity", kind="embedder", dim=method.config.transform.dim, sha256=method.fingerprint(),
            differentiable=False, licence="as of the model", source="the identity experts of the model",
            origin="file",
        )  # fmt: skip

    @torch.no_grad()
    def embed(self, images: Tensor) -> Tensor:
        """(N, 3, H, W) -> (N, D) vectors of length 1, or zeros."""
        answers = [self._one(image) for image in images]
        return torch.stack(answers) if answers else images.new_zeros(0, self.dim)

    def _one(self, image: Tensor) -> Tensor:
        for face in found_faces(self._method.finder.detect(image[None])[0], None):
            vector = self._method.identity_of(image, face)
            if vector is not None:
                return vector[0]
        return image.new_zeros(self.dim)
