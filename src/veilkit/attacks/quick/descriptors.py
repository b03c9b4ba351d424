"""What quick attackers see of a picture: its colours in small, and what a recogniser says of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np

from veilkit.attacks.pictures import Features, Pictures, resized
from veilkit.experts import Embedder
from veilkit.experts.builtin import STRIPES, stripe_statistics

LAYOUT = (16, 8)  # rows and columns of mean colours
_COMPONENTS = 64  # of colours, and of features, that a description keeps
_FLAT = 1e-6  # of the largest: what differs less is rounding


def layout(pictures: Pictures, size: tuple[int, int] = LAYOUT) -> Features:
    """(N, 3 rows columns) mean colours of the parts of each picture, in [0, 1]."""
    found = np.empty((len(pictures), 3 * size[0] * size[1]), dtype=np.float32)
    for part, images in pictures.batches():
        found[part] = resized(images, size).flatten(1).numpy()
    return found


def seen(pictures: Pictures, recogniser: Embedder) -> Features:
    """(N, D) colours in small and unit features side by side, each block of about the same weight."""
    features = pictures.features(recogniser)
    features = features / np.maximum(np.linalg.norm(features, axis=1, keepdims=True), 1e-12)
    colours = layout(pictures) - np.float32(0.5)
    return np.concatenate([colours / np.sqrt(colours.shape[1] / 3), features], axis=1)


def worn(pictures: Pictures, recogniser: Embedder) -> Features:
    """(N, D) unit features and colours from head to foot side by side: what differs between people."""
    features = pictures.features(recogniser)
    features = features / np.maximum(np.linalg.norm(features, axis=1, keepdims=True), 1e-12)
    stripes = np.empty((len(pictures), 12 * STRIPES), dtype=np.float32)
    for part, images in pictures.batches():
        stripes[part] = stripe_statistics(images).numpy()
    return np.concatenate([stripes, features], axis=1)


def standardised(vectors: Features) -> Features:
    """Each column about its mean over these pictures, in units of its deviation."""
    deviation = vectors.std(axis=0)
    return np.asarray((vectors - vectors.mean(axis=0)) / np.maximum(deviation, 1e-6), dtype=np.float32)


@dataclass(frozen=True, slots=True, eq=False)
class Axes:
    """The directions in which vectors differ most, (K, D), divided by their deviations: unlike scikit-learn's PCA, a
    release of one colour has none, and that is no error.
    """

    mean: Features
    rows: Features

    @classmethod
    def of(cls, vectors: Features, most: int) -> Self:
        """Of vectors (N, D), at most so many."""
        mean = vectors.mean(axis=0)
        _, sizes, rows = np.linalg.svd((vectors - mean).astype(np.float64), full_matrices=False)
        kept = min(most, int((sizes > _FLAT * max(float(sizes.max(initial=0.0)), 1.0)).sum()))
        deviations = sizes[:kept, None] / np.sqrt(max(1, len(vectors) - 1))
        return cls(mean, np.asarray(rows[:kept] / deviations, dtype=np.float32))

    def __call__(self, vectors: Features) -> Features:
        """(N, K) of vectors (N, D); where nothing differed, a column of zeros."""
        found = (vectors - self.mean) @ self.rows.T
        return np.asarray(found if len(self.rows) else np.zeros((len(vectors), 1)), dtype=np.float32)


@dataclass(frozen=True, slots=True, eq=False)
class Description:
    """What original pictures are told apart by: principal components of colours and features, of unit variance."""

    colours: Axes
    features: Axes

    @classmethod
    def learn(cls, pictures: Pictures, recogniser: Embedder) -> Self:
        """From public originals."""
        seen_of = (layout(pictures), pictures.features(recogniser))
        return cls(*(Axes.of(each, _COMPONENTS) for each in seen_of))

    def of(self, pictures: Pictures, recogniser: Embedder) -> Features:
        """(N, K) of other pictures."""
        return np.concatenate([self.colours(layout(pictures)), self.features(pictures.features(recogniser))], axis=1)
