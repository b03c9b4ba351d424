"""A saved student of a synthetic release as a classifier: logits by its class prototypes.

Students are saved without their classifiers, which belong to the training people. Whoever holds the release has its
pictures by class, so a class's prototype stands in for the lost weights: the mean of the student's features of the
class's synthetic pictures. A candidate's logit is the cosine to it, scaled.
"""

from __future__ import annotations

import hashlib
from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from torch import Tensor

from veilkit.attacks.pictures import Pictures
from veilkit.attacks.synthetic_release.base import Model
from veilkit.audit.options import AuditPlan
from veilkit.errors import DataError, UsageError
from veilkit.experts import Embedder, load_expert
from veilkit.pipeline.manifest import known_manifest
from veilkit.pipeline.synthesis import is_synthetic

SCALE = 20.0  # of the cosines, as of the cosine logits that `training.reid_config` trains with
HOW = (
    "a saved student has no classifier: its logits are 20 times the cosine to the mean of its features of each "
    "class's synthetic pictures, which anybody who holds the release can compute"
)


def load_student(plan: AuditPlan) -> Embedder | None:
    """The student that was named; raises where what was named belongs to a synthetic release, and this is none."""
    named = {"--unseen": plan.unseen, "--held-out": plan.held_out, "--student": plan.student}
    options = ", ".join(name for name, value in named.items() if value is not None)
    if options and not is_synthetic(known_manifest(plan.protected)[0]):
        raise UsageError(
            f"{options} belongs to a release whose pictures have no originals, but the manifest of "
            f"{plan.protected.name} does not say that it is one; leave it out"
        )
    return load_expert(Path(plan.student)) if isinstance(plan.student, str | Path) else plan.student


class RememberedModel:
    """A model's answers, computed once for each picture: several attacks ask for the same candidates."""

    def __init__(self, model: Model) -> None:
        self._model = model
        self._seen: dict[bytes, Tensor] = {}

    def __call__(self, images: Tensor) -> Tensor:
        """(N, 3, H, W) in [0, 1] -> (N, D)."""
        names = [_name(image) for image in images]
        new = [place for place, name in enumerate(names) if name not in self._seen]
        if new:
            with torch.no_grad():
                found = self._model(images[new])
            self._seen.update(zip((names[place] for place in new), found, strict=True))
        return torch.stack([self._seen[name] for name in names])


class PrototypeStudent:
    """Logits (N, C) of a student known by its features alone; the prototypes are made when first asked for.

    features: images (N, 3, H, W) in [0, 1] to features (N, D). synthetic, classes: the release's pictures, and (S,)
    the code of each one's class, of which there must be two. Columns are in the order of the codes.
    """

    def __init__(self, features: Model, synthetic: Pictures, classes: NDArray[np.int64]) -> None:
        self._features, self._synthetic = features, synthetic
        codes, place = np.unique(classes, return_inverse=True)
        if len(codes) < 2:
            raise DataError(f"expected synthetic pictures of at least two classes, but got {len(codes)}")
        self._count, self._place = len(codes), torch.from_numpy(place)
        self._known: Tensor | None = None

    @torch.no_grad()
    def __call__(self, images: Tensor) -> Tensor:
        """(N, 3, H, W) in [0, 1] -> logits (N, C)."""
        if self._known is None:
            self._known = self._prototypes()
        return SCALE * F.normalize(self._features(images)) @ self._known.T

    def _prototypes(self) -> Tensor:
        """(C, D) of length one."""
        total: Tensor | None = None
        for part, images in self._synthetic.batches():
            found = F.normalize(self._features(images))
            if total is None:
                total = found.new_zeros(self._count, found.shape[1])
            total.index_add_(0, self._place[part], found)
        assert total is not None
        return F.normalize(total)


def _name(image: Tensor) -> bytes:
    data = image.contiguous().numpy()
    return hashlib.blake2b(str(data.shape).encode() + data.tobytes(), digest_size=16).digest()
