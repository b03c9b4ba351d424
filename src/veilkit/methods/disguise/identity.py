"""Who somebody is, as Disguise takes it: experts, joined to one unit vector; and who is the same person."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from torch import Tensor

from veilkit.errors import ConfigError
from veilkit.experts.alignment import VIEWS, view
from veilkit.experts.base import Embedder, ExpertInfo
from veilkit.methods.disguise.identity_transforms import Ensemble, geometry_loss
from veilkit.methods.faces.method import found_faces
from veilkit.rng import Randomness
from veilkit.training.fitting import FitConfig, fit_network, seeded

if TYPE_CHECKING:
    from veilkit.methods.disguise.method import Disguise


_CHUNK = 32
_PAIRS = 64  # pictures whose cosines are compared at once


class IdentityEncoder:
    """h_Z: crops (N, 3, S, S) in [0, 1] to identities (N, dim) of length 1; gradients reach the crops.

    experts: each owns its resize. views: what part of a crop each is shown (see `alignment.VIEWS`); one is for
    all of them. ensemble: None where a single expert's features are the identity. centres: (D_i,) of each expert,
    subtracted from its features; none subtracts nothing.
    """

    def __init__(
        self,
        experts: Sequence[Embedder],
        dim: int,
        ensemble: Ensemble | None = None,
        *,
        views: Sequence[str] = ("arcface",),
        centres: Sequence[Tensor] = (),
    ) -> None:
        if not experts:
            raise ConfigError(
                "disguise needs identity experts, which say who somebody is: set identity to one or more of "
                "`veilkit experts list`, or to .safetensors files"
            )
        for expert in experts:
            if not expert.differentiable:
                raise ConfigError(f"the expert {expert.name!r} can judge, but not supervise: take a torch expert")
        if len(views) not in (1, len(experts)):
            raise ConfigError(f"expected one view, or one for each of {len(experts)} experts, but got {len(views)}")
        for name in views:
            _ = VIEWS[name]  # an unknown one is told now
        self.experts, self.dim = tuple(experts), dim
        self._views = tuple(views) if len(views) > 1 else tuple(views) * len(experts)
        self.ensemble, self.centres = ensemble, tuple(centres)

    @property
    def needs_ensemble(self) -> bool:
        """Whether features must be joined, or brought to another length."""
        return len(self.experts) > 1 or self.experts[0].dim != self.dim

    @property
    def fingerprint(self) -> str:
        """A hash of all that the experts' features depend on."""
        each = (f"{e.info.fingerprint} {shown}" for e, shown in zip(self.experts, self._views, strict=True))
        return hashlib.sha256(" ".join(each).encode()).hexdigest()

    def features(self, crops: Tensor) -> list[Tensor]:
        """Each expert's features, about their centre."""
        raw = [expert.embed(view(crops, shown)) for expert, shown in zip(self.experts, self._views, strict=True)]
        return [each - centre for each, centre in zip(raw, self.centres, strict=True)] if self.centres else raw

    def centre_on(self, features: Sequence[Tensor]) -> list[Tensor]:
        """Take the means of each expert's raw features (N, D_i) for centres; returns the features about them.

        Some networks answer much the same for everybody: cosines of dlib's features are above 0.8 for strangers, and
        a loss of cosines hardly sees who is who. About the mean, strangers are at right angles.
        """
        self.centres = tuple(each.mean(0) for each in features)
        return [each - centre for each, centre in zip(features, self.centres, strict=True)]

    def joined(self, features: Sequence[Tensor]) -> Tensor:
        """Features of each expert to identities."""
        if not self.needs_ensemble:
            return F.normalize(features[0])
        assert self.ensemble is not None  # `with_ensemble` or a model file brings it
        joined: Tensor = self.ensemble(features)
        return joined

    def __call__(self, crops: Tensor) -> Tensor:
        """The identities of crops."""
        return self.joined(self.features(crops))

    @torch.no_grad()
    def features_of_pixels(self, pixels: Tensor) -> list[Tensor]:
        """Each expert's features of 8-bit crops (N, 3, S, S)."""
        parts = [self.features(part.float().div(255)) for part in torch.split(pixels, _CHUNK)]
        return [torch.cat(each) for each in zip(*parts, strict=True)]


def new_ensemble(experts: Sequence[Embedder], dim: int, rng: Randomness) -> Ensemble:
    """An ensemble of new weights."""
    return seeded(lambda: Ensemble([expert.dim for expert in experts], dim), rng)


def fit_ensemble(
    encoder: IdentityEncoder,
    features: Sequence[Tensor],
    steps: int,
    seed: int,
    facts: dict[str, object],
    state: Path,
    stream: TextIO | None = None,
) -> None:
    """Let the ensemble keep the experts' mean cosines between training pictures; frozen afterwards.

    The paper does not say how it is trained. Trained along with the swapper it could answer the same for everybody,
    which fulfils the identity loss.
    """
    ensemble = new_ensemble(encoder.experts, encoder.dim, Randomness.from_seed(seed).child("disguise", "ensemble"))

    def loss(positions: NDArray[np.int64]) -> Tensor:
        some = [each[positions] for each in features]
        return geometry_loss(ensemble(some), some)

    config = FitConfig(updates=steps, batch=_PAIRS, rate=1e-3, seed=seed)
    fit_network(
        ensemble, loss, len(features[0]), config, facts=facts, state=state, what="joining experts", stream=stream
    )
    encoder.ensemble = ensemble.requires_grad_(False)


_MOST = 20_000  # faces; all pairs are compared


def cluster_people(vectors: Tensor, threshold: float) -> Tensor:
    """Unit vectors (N, D) to the middles (P, D), of length 1, of clusters whose mean cosine is at least `threshold`.

    Average linkage; the middles come in the order of their first face.
    """
    from sklearn.cluster import AgglomerativeClustering  # half a second that only clustering has to pay for

    from veilkit.errors import DataError

    if len(vectors) > _MOST:
        raise DataError(f"at most {_MOST} faces can be compared with each other, but got {len(vectors)}: give labels")
    if len(vectors) < 2:
        return vectors.clone()
    unit = F.normalize(vectors.double())
    clusters = AgglomerativeClustering(
        n_clusters=None, metric="cosine", linkage="average", distance_threshold=1 - threshold
    ).fit(unit.numpy())
    labels = np.asarray(clusters.labels_)
    first = {int(label): place for place, label in reversed(list(enumerate(labels)))}
    middles = [unit[torch.from_numpy(labels == label)].mean(0) for label in sorted(first, key=first.__getitem__)]
    return F.normalize(torch.stack(middles)).float()


def known_person(vector: Tensor, middles: Tensor, threshold: float) -> int | None:
    """The nearest of `middles` (P, D) to a unit vector (D,), where its cosine is at least `threshold`."""
    if not len(middles):
        return None
    cosines = middles @ vector
    best = int(cosines.argmax())
    return best if float(cosines[best]) >= threshold else None


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
