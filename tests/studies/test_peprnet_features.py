"""Averaging of released features, and membership by how close together a person's features lie."""

from __future__ import annotations

import numpy as np
import pytest

from studies.peprnet.feature_attacks import averaged_releases, feature_membership, togetherness
from veilkit.errors import ConfigError, DataError
from veilkit.rng import Randomness

RNG = Randomness.from_seed(0)


def test_noise_falls_by_the_root_of_the_number_of_releases() -> None:
    random, truth = np.random.default_rng(0), np.ones((200, 10))
    calls = []

    def release() -> np.ndarray:
        calls.append(1)
        return (truth + random.normal(size=truth.shape)).astype(np.float32)

    found = averaged_releases(release, (1, 4, 16))
    assert len(calls) == 16
    for count, vectors in found.items():
        assert (vectors - truth).std() == pytest.approx(1 / np.sqrt(count), rel=0.05)
    with pytest.raises(ConfigError, match="positive and rise"):
        averaged_releases(release, (4, 1))


def test_a_release_that_is_remembered_gains_nothing_by_averaging() -> None:
    held = np.random.default_rng(0).normal(size=(5, 3)).astype(np.float32)
    for vectors in averaged_releases(lambda: held, (1, 4, 16)).values():
        np.testing.assert_allclose(vectors, held, rtol=1e-6)


def test_togetherness_is_the_mean_cosine_of_pairs() -> None:
    features = np.random.default_rng(0).normal(size=(5, 4)).astype(np.float32)
    unit = features / np.linalg.norm(features, axis=1, keepdims=True)
    first = np.mean([unit[a] @ unit[b] for a, b in ((0, 1), (0, 3), (1, 3))])
    second = unit[2] @ unit[4]
    found = togetherness(features, np.array([7, 7, 2, 7, 2]))
    assert found == pytest.approx([second, first], abs=1e-6)
    with pytest.raises(DataError, match="two pictures of each person"):
        togetherness(features, np.array([1, 1, 2, 2, 3]))


def cloud(people: int, shots: int, spread: float, seed: int) -> tuple[np.ndarray, np.ndarray]:
    random = np.random.default_rng(seed)
    codes = np.repeat(np.arange(people), shots)
    centres = random.normal(size=(people, 12))[codes]
    return (centres + spread * random.normal(size=centres.shape)).astype(np.float32), codes


def test_training_people_are_told_where_they_lie_closer_together_and_not_otherwise() -> None:
    outside, others = cloud(60, 5, 0.6, 1)
    tight, codes = cloud(80, 4, 0.3, 2)
    scores, chance = feature_membership(tight, codes, outside, others + 1000, RNG)
    assert scores[0].metric == "AUC"
    assert scores[0].value > 0.9
    assert chance["AUC"] == 0.5
    same, codes = cloud(80, 4, 0.6, 3)
    scores, _ = feature_membership(same, codes, outside, others + 1000, RNG)
    assert scores[0].low is not None
    assert scores[0].high is not None
    assert scores[0].low <= 0.5 <= scores[0].high
