"""Clustering of features by identity: Silhouette and adjusted Rand index."""

from __future__ import annotations

from typing import Literal

import numpy as np
from numpy.typing import NDArray
from sklearn.cluster import KMeans
from sklearn.metrics import adjusted_rand_score, silhouette_score

from veilkit.errors import ConfigError, DataError
from veilkit.metrics.inputs import Values, finite_features, l2_normalised, whole_numbers

Distance = Literal["cosine", "euclidean"]


def silhouette(features: Values, identities: Values, *, distance: Distance = "cosine") -> float:
    """Mean Silhouette of features (N, D) grouped by identity, in [-1, 1]; higher is better separated."""
    points, labels = _checked(features, identities, distance)
    if distance == "cosine" and not np.any(points, axis=1).all():
        raise DataError("cosine distance needs features that are not all zero, but some rows are; use 'euclidean'")
    return float(silhouette_score(points, labels, metric=distance))


def kmeans_ari(features: Values, identities: Values, *, seed: int, distance: Distance = "cosine") -> float:
    """Adjusted Rand index of identities and k-means clusters of features (N, D), K the number of identities.

    1 for perfect agreement, about 0 for chance. For "cosine" the features are L2-normalised first. The best of ten
    starts is taken; `seed` decides them.
    """
    points, labels = _checked(features, identities, distance)
    if distance == "cosine":
        points = l2_normalised(points)
    wanted, distinct = len(np.unique(labels)), len(np.unique(points, axis=0))
    if distinct < wanted:
        raise DataError(
            f"k-means with one cluster for each of {wanted} identities needs as many distinct features, "
            f"but got {distinct}: the features have collapsed"
        )
    clusters = KMeans(n_clusters=wanted, n_init=10, random_state=seed).fit_predict(points)
    return float(adjusted_rand_score(labels, clusters))


def _checked(
    features: Values, identities: Values, distance: Distance
) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
    if distance not in ("cosine", "euclidean"):
        raise ConfigError(f"distance must be 'cosine' or 'euclidean', but got {distance!r}")
    points = finite_features(features, "features")
    labels = whole_numbers(identities, "identities", len(points))
    groups = len(np.unique(labels))
    if not 2 <= groups < len(labels):
        raise DataError(
            "clustering needs at least 2 identities and one of them with 2 or more images, "
            f"but got {groups} identities for {len(labels)} images"
        )
    return points, labels
