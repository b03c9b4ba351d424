from __future__ import annotations

import numpy as np
import pytest

from studies.shared.clustering import kmeans_ari, silhouette
from veilkit.errors import ConfigError, DataError


def blobs(spread: float, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    labels = np.repeat(np.arange(6), 15)
    return 5 * np.eye(6)[labels] + spread * rng.normal(size=(90, 6)), labels


def direct_silhouette(distances: np.ndarray, labels: np.ndarray) -> float:
    values = []
    for i, row in enumerate(distances):
        others = np.arange(len(labels)) != i
        own = others & (labels == labels[i])
        if not own.any():
            values.append(0.0)
            continue
        a = row[own].mean()
        b = min(row[labels == other].mean() for other in set(labels) - {labels[i]})
        values.append((b - a) / max(a, b))
    return float(np.mean(values))


@pytest.mark.parametrize("distance", ["cosine", "euclidean"])
def test_silhouette_is_its_definition(distance):
    features, labels = blobs(2.0)
    labels[0] = 99  # alone in its group
    if distance == "cosine":
        unit = features / np.linalg.norm(features, axis=1, keepdims=True)
        distances = 1 - unit @ unit.T
    else:
        distances = np.linalg.norm(features[:, None] - features[None], axis=2)
    assert silhouette(features, labels, distance=distance) == pytest.approx(
        direct_silhouette(distances, labels), abs=1e-5
    )


@pytest.mark.parametrize("distance", ["cosine", "euclidean"])
def test_ari_is_one_for_clear_groups_and_near_zero_for_noise(distance):
    features, labels = blobs(0.1)
    assert kmeans_ari(features, labels + 100, seed=0, distance=distance) == pytest.approx(1.0)
    noise = np.random.default_rng(1).normal(size=(90, 6))
    assert abs(kmeans_ari(noise, labels, seed=0, distance=distance)) < 0.1


def test_ari_is_decided_by_its_seed():
    features, labels = blobs(3.0)
    assert kmeans_ari(features, labels, seed=4) == kmeans_ari(features, labels, seed=4)


def test_length_of_features_matters_only_to_euclidean():
    features, labels = blobs(0.3)
    stretched = features * np.random.default_rng(2).uniform(0.01, 10, (90, 1))
    assert kmeans_ari(stretched, labels, seed=0) == pytest.approx(1.0)
    assert kmeans_ari(stretched, labels, seed=0, distance="euclidean") < 0.9
    assert silhouette(stretched, labels) == pytest.approx(silhouette(features, labels), abs=1e-5)


def test_degenerate_input_is_explained():
    features, labels = blobs(1.0)
    for measure in (silhouette, lambda f, i: kmeans_ari(f, i, seed=0)):
        with pytest.raises(DataError, match="at least 2 identities"):
            measure(features, np.zeros(90, dtype=int))
        with pytest.raises(DataError, match="2 or more images"):
            measure(features, np.arange(90))
    with pytest.raises(DataError, match="collapsed"):
        kmeans_ari(np.ones((90, 6)), labels, seed=0)
    with pytest.raises(DataError, match="all zero"):
        silhouette(np.zeros((90, 6)), labels)
    with pytest.raises(ConfigError, match="'cosine' or 'euclidean'"):
        silhouette(features, labels, distance="manhattan")
