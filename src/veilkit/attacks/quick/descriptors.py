"""What quick attackers see of a picture: its colours in small, and what a recogniser says of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import NDArray
from sklearn.decomposition import PCA

from veilkit.attacks.pictures import Pictures, resized
from veilkit.experts import Embedder

Vectors = NDArray[np.float32]
LAYOUT = (16, 8)  # rows and columns of mean colours
_COMPONENTS = 64  # of colours, and of features, that a description keeps


def layout(pictures: Pictures, size: tuple[int, int] = LAYOUT) -> Vectors:
    """(N, 3 rows columns) mean colours of the parts of each picture, in [0, 1]."""
    found = np.empty((len(pictures), 3 * size[0] * size[1]), dtype=np.float32)
    for part, images in pictures.batches():
        found[part] = resized(images, size).flatten(1).numpy()
    return found


def seen(pictures: Pictures, recogniser: Embedder) -> Vectors:
    """(N, D) colours in small and unit features side by side, each block of about the same weight."""
    features = pictures.features(recogniser)
    features = features / np.maximum(np.linalg.norm(features, axis=1, keepdims=True), 1e-12)
    colours = layout(pictures) - np.float32(0.5)
    return np.concatenate([colours / np.sqrt(colours.shape[1] / 3), features], axis=1)


def standardised(vectors: Vectors) -> Vectors:
    """Each column about its mean over these pictures, in units of its deviation."""
    deviation = vectors.std(axis=0)
    return np.asarray((vectors - vectors.mean(axis=0)) / np.maximum(deviation, 1e-6), dtype=np.float32)


@dataclass(frozen=True, slots=True, eq=False)
class Description:
    """What original pictures are told apart by: principal components of colours and features, of unit variance."""

    colours: PCA
    features: PCA

    @classmethod
    def learn(cls, pictures: Pictures, recogniser: Embedder) -> Self:
        """From public originals."""
        colours, features = layout(pictures), pictures.features(recogniser)
        most = min(_COMPONENTS, len(pictures) - 1)
        parts = (
            PCA(min(most, each.shape[1]), whiten=True, svd_solver="full").fit(each) for each in (colours, features)
        )
        return cls(*parts)

    def of(self, pictures: Pictures, recogniser: Embedder) -> Vectors:
        """(N, K) of other pictures."""
        parts = (self.colours.transform(layout(pictures)), self.features.transform(pictures.features(recogniser)))
        return np.concatenate(parts, axis=1).astype(np.float32)
