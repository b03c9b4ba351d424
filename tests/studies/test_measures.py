"""Measures of the studies: clusters, likeness by size, what is kept in faces, and DP-SGD."""

from __future__ import annotations

import sys

import numpy as np
import pytest
import torch

from studies.controls.sizes import likeness_by_size
from studies.disguise.utility import expression_agreement, gaze_errors, landmark_errors
from studies.peprnet.rivals import DpSgdConfig, train_dpsgd
from studies.shared.clustering import kmeans_ari, silhouette
from veilkit.attacks.pictures import HeldPictures
from veilkit.errors import ConfigError, DataError
from veilkit.networks.reid import ReidNetwork, ReidNetworkConfig
from veilkit.rng import Randomness


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


SIZES = ((32, 16), (64, 32))
RNG = Randomness.from_seed(0)


def test_nothing_is_lost_of_plain_pictures() -> None:
    plain = HeldPictures(torch.full((3, 3, 32, 16), 0.4))
    found = likeness_by_size(plain, ["pixelate", "blur"], SIZES, RNG)
    assert list(found) == ["32x16", "64x32"]
    for row in found.values():
        assert row == pytest.approx({"pixelate": 1.0, "blur": 1.0}, abs=1e-4)


def test_more_is_left_of_enlarged_pictures() -> None:
    grain = HeldPictures(torch.rand(3, 3, 32, 16, generator=torch.Generator().manual_seed(1)))
    found = likeness_by_size(grain, ["pixelate", "blur"], SIZES, RNG)
    for name in ("pixelate", "blur"):
        assert 0 < found["32x16"][name] < found["64x32"][name] < 1


def test_a_shift_by_a_tenth_of_the_eyes_distance_is_ten_percent() -> None:
    truth = np.random.default_rng(0).normal(size=(4, 68, 2))
    truth[:, 36], truth[:, 45] = [0.0, 0.0], [3.0, 4.0]  # five apart
    found = truth + np.array([0.3, -0.4])
    for error in landmark_errors(found, truth).values():
        assert error == pytest.approx(10)
    moved = truth.copy()
    moved[:, 60] += [0.5, 0]  # one of twenty points of the mouth
    errors = landmark_errors(moved, truth)
    assert errors["mouth"] == pytest.approx(0.5)
    assert errors["all"] == pytest.approx(10 / 68)
    assert not errors["eyes"].any()
    assert not errors["nose"].any()


def test_five_points_have_parts_too() -> None:
    truth = np.array([[[0, 0], [10, 0], [5, 5], [2, 9], [8, 9]]], dtype=float)
    found = truth.copy()
    found[0, 2] += [0, 1]
    assert {part: float(error[0]) for part, error in landmark_errors(found, truth).items()} == pytest.approx(
        {"all": 2, "eyes": 0, "nose": 10, "mouth": 0}
    )


def test_angles_and_agreement() -> None:
    assert gaze_errors(np.array([[0, 30], [90, 0], [7, 7]]), np.array([[0, -30], [0, 90], [7, 7]])) == pytest.approx(
        [60, 90, 0], abs=1e-5
    )
    scores = np.array([[0.1, 0.9], [0.6, 0.4]])
    assert expression_agreement(scores, scores[:, ::-1]).tolist() == [0, 0]
    assert expression_agreement(scores, 2 * scores).tolist() == [1, 1]


def test_what_does_not_fit_is_refused() -> None:
    with pytest.raises(DataError, match="68 or 5"):
        landmark_errors(np.zeros((1, 7, 2)), np.zeros((1, 7, 2)))
    with pytest.raises(DataError, match="one place"):
        landmark_errors(np.zeros((1, 5, 2)), np.zeros((1, 5, 2)))
    with pytest.raises(DataError, match="yaw and pitch"):
        gaze_errors(np.zeros((1, 3)), np.zeros((1, 3)))
    with pytest.raises(DataError, match="classes"):
        expression_agreement(np.zeros((1, 3)), np.zeros((1, 2)))


SMALL = ReidNetworkConfig(backbone="osnet-x0.25", size=(32, 16), feature="pooled")


def clouds(people: int = 4, shots: int = 40) -> tuple[ReidNetwork, torch.Tensor, torch.Tensor]:
    torch.manual_seed(0)
    network = ReidNetwork(SMALL).eval()
    labels = torch.arange(people).repeat_interleave(shots)
    centres = torch.randn(people, network.backbone.channels)
    return network, centres[labels] + 0.3 * torch.randn(len(labels), centres.shape[1]), labels


def test_more_privacy_means_less_is_learned_and_the_budget_is_kept() -> None:
    pytest.importorskip("opacus")
    network, features, labels = clouds()
    common = {"features": 8, "epochs": 8, "batch": 40}
    free, mild, strict = (
        train_dpsgd(network, features, labels, DpSgdConfig(epsilon=epsilon, delta=1e-4, **common))  # type: ignore[arg-type]
        for epsilon in (None, 50.0, 0.2)
    )
    assert (free.multiplier, free.epsilon) == (0.0, None)
    assert free.accuracy == 1.0
    assert mild.epsilon is not None
    assert strict.epsilon is not None
    assert mild.epsilon <= 50.0 * 1.01
    assert strict.epsilon <= 0.2 * 1.01
    assert strict.multiplier > mild.multiplier > 0
    assert strict.accuracy < mild.accuracy


def test_the_network_gives_the_heads_features() -> None:
    network, features, labels = clouds()
    trained = train_dpsgd(network, features, labels, DpSgdConfig(epsilon=None, delta=1e-4, features=8, epochs=1))
    images = torch.rand(3, 3, 32, 16)
    with torch.no_grad():
        projection = trained.network.projection
        assert isinstance(projection, torch.nn.Linear)
        torch.testing.assert_close(trained.network.embed(images), projection(network.embed(images)))
    assert trained.network.config.projection == 8


def test_without_opacus_it_says_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "opacus", None)
    with pytest.raises(ConfigError, match=r"veilkit\[dpsgd\]"):
        train_dpsgd(*clouds(), DpSgdConfig(epsilon=1.0, delta=1e-4, features=8, epochs=1))
    with pytest.raises(ConfigError, match="epsilon must be between"):
        DpSgdConfig(epsilon=-1.0, delta=1e-4)
