"""Clustering of features by identity: Silhouette and adjusted Rand index, and a figure in the plane."""

from __future__ import annotations

from html import escape
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from sklearn.cluster import KMeans
from sklearn.manifold import TSNE
from sklearn.metrics import adjusted_rand_score, silhouette_score

from veilkit.errors import ConfigError, DataError
from veilkit.media.writing import write_atomically
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


def clustering(features: np.ndarray, people: np.ndarray, seed: int) -> dict[str, Any]:
    """Silhouette and ARI of features (N, D) of people (N,)."""
    return {
        "pictures": len(people),
        "people": len(np.unique(people)),
        "silhouette": silhouette(features, people),
        "ari": kmeans_ari(features, people, seed=seed),
    }


def draw_plane(file: Path, what: str, features: np.ndarray, people: np.ndarray, *, seed: int) -> None:
    """Features (N, D) by t-SNE, one colour for each person."""
    unit = features / np.maximum(np.linalg.norm(features, axis=1, keepdims=True), 1e-12)
    near = min(30.0, (len(unit) - 1) / 3)
    places = TSNE(perplexity=near, init="pca", random_state=seed).fit_transform(unit)
    places = (places - places.min(0)) / np.maximum(np.ptp(places, axis=0), 1e-9)
    count = len(np.unique(people))
    dots = "".join(
        f'<circle cx="{10 + 380 * x:.1f}" cy="{10 + 380 * y:.1f}" r="2.6" fill="hsl({hue:.0f} 65% 45%)"/>'
        for (x, y), hue in zip(places.tolist(), (360 * people / count).tolist(), strict=True)
    )
    title = escape(f"t-SNE of {what}, {count} people")
    svg = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 400 400" role="img"><title>{title}</title>'
        f'<rect width="400" height="400" fill="#fff"/>{dots}</svg>\n'
    )
    write_atomically(file, svg.encode(), file.parent)
