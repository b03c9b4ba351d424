"""The auditor, its bounds, and the bugs it must catch (benchmarks/privacy_audit.py with few draws)."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch
from scipy.stats import binomtest, norm
from torch import Tensor

import privacy_audit
from veilkit.errors import ConfigError, DataError
from veilkit.privacy import (
    Budget,
    Ledger,
    PrivUnit,
    SeededNoise,
    antipodal,
    companion,
    identification,
    identification_bound,
    unit,
)
from veilkit.privacy.auditor import epsilon_from_rates, gaussian_parameter, rates_at_least, rates_at_most


@pytest.mark.parametrize("bug", privacy_audit.BUGS, ids=lambda bug: bug.name)
def test_planted_bugs_are_caught(bug: privacy_audit.Bug) -> None:
    assert bug.attack(2.0, 4000).refutes(2.0)


def response(epsilon: float, seed: int) -> Callable[[Tensor], Tensor]:
    """Randomised response on the sign of the first coordinate: an epsilon that is met exactly."""
    generator = np.random.default_rng(seed)

    def release(vectors: Tensor) -> Tensor:
        lie = torch.from_numpy(generator.random(len(vectors)) > np.exp(epsilon) / (1 + np.exp(epsilon)))
        kept = torch.sign(vectors[:, :1]) * torch.where(lie, -1.0, 1.0)[:, None]
        return kept.expand(-1, vectors.shape[1])

    return release


def test_the_bound_is_close_and_below_for_an_epsilon_that_is_known() -> None:
    shown = [
        antipodal(response(1.0, seed), dimension=2, delta=0.0, draws=20_000, confidence=0.95).epsilon
        for seed in range(40)
    ]
    assert sum(epsilon > 1.0 for epsilon in shown) <= 5  # of 40, each with a chance of at most 1 in 20
    assert np.mean(shown) > 0.9
    assert antipodal(response(1.0, 0), dimension=2, delta=0.0, draws=20_000).refutes(0.8)


def test_two_inputs_with_the_same_outputs_show_nothing() -> None:
    generator = np.random.default_rng(0)

    def release(vectors: Tensor) -> Tensor:
        return torch.from_numpy(generator.standard_normal(tuple(vectors.shape)))

    assert antipodal(release, dimension=2, delta=1e-6, draws=2000, gaussian=True).epsilon == 0.0
    assert companion(release, dimension=2, delta=0.0, draws=2000).epsilon == 0.0
    found = identification(release, unit(torch.eye(4)), delta=0.0, trials=2000, generator=np.random.default_rng(1))
    assert found.epsilon == 0.0


def test_no_noise_at_all_shows_all_that_so_many_draws_can() -> None:
    assert antipodal(lambda vectors: vectors, dimension=3, delta=0.0, draws=2000).epsilon > 3.5
    everybody = unit(torch.randn(100, 8, generator=torch.Generator().manual_seed(0)))
    found = identification(
        lambda vectors: vectors, everybody, delta=0.0, trials=2000, generator=np.random.default_rng(1)
    )
    assert found.epsilon > 9.0


def test_releases_of_one_record_that_nobody_charged_for_average_out_unless_they_go_through_the_ledger(
    tmp_path: Path,
) -> None:
    mechanism = PrivUnit(dimension=8, epsilon=1.0)

    def averaged(vectors: Tensor) -> Tensor:
        return torch.stack([mechanism.release(vectors) for _ in range(8)]).mean(0)

    assert antipodal(averaged, dimension=8, delta=0.0, draws=3000).refutes(1.0)

    with Ledger(tmp_path / "ledger", budget=Budget(epsilon=1.0, delta=0.0), per="record") as ledger:

        def asked_again(vectors: Tensor) -> Tensor:
            records = [str(len(ledger) + row) for row in range(len(vectors))]
            return torch.stack([ledger.release(mechanism, vectors, records=records) for _ in range(8)]).mean(0)

        assert not antipodal(asked_again, dimension=8, delta=0.0, draws=1000).refutes(1.0)


def test_features_that_are_normalised_or_refused_are_not_accused() -> None:
    mechanism = PrivUnit(dimension=4, epsilon=1.0)
    noise = SeededNoise(0, insecure=True)
    found = antipodal(
        lambda raw: mechanism.release(unit(raw), noise=noise), dimension=4, delta=0.0, draws=4000, norm=10.0
    )
    assert not found.refutes(1.0)
    with pytest.raises(DataError, match="expected unit vectors"):
        antipodal(mechanism.release, dimension=4, delta=0.0, draws=1000, norm=10.0)


def test_an_audit_of_nothing_is_refused() -> None:
    with pytest.raises(ConfigError, match="at least 100 draws"):
        antipodal(lambda vectors: vectors, dimension=3, delta=0.0, draws=10)
    with pytest.raises(DataError, match="must be finite, of that shape"):
        antipodal(lambda vectors: vectors[:, :2], dimension=3, delta=0.0, draws=1000)
    with pytest.raises(ConfigError, match="delta 0"):
        antipodal(lambda vectors: vectors, dimension=3, delta=0.0, draws=1000, gaussian=True)
    with pytest.raises(ConfigError, match="delta must be"):
        companion(lambda vectors: vectors, dimension=3, delta=1.5, draws=1000)


@pytest.mark.parametrize("successes", [0, 1, 37, 99, 100])
def test_rates_are_bounded_by_the_exact_binomial_test(successes: int) -> None:
    tail = 1e-6
    low = binomtest(successes, 100, alternative="greater").proportion_ci(1 - tail, method="exact").low
    high = binomtest(successes, 100, alternative="less").proportion_ci(1 - tail, method="exact").high
    assert rates_at_least(np.array([successes]), 100, tail=tail)[0] == pytest.approx(low, abs=1e-9)
    assert rates_at_most(np.array([successes]), 100, tail=tail)[0] == pytest.approx(high, abs=1e-9)


def test_rates_of_a_pure_mechanism_show_its_epsilon() -> None:
    hits, alarms = np.array([math.e**2 / (1 + math.e**2)]), np.array([1 / (1 + math.e**2)])
    assert epsilon_from_rates(hits, alarms, delta=0.0)[0] == pytest.approx(2.0)
    assert epsilon_from_rates(hits, alarms, delta=0.1)[0] < 2.0
    assert epsilon_from_rates(alarms, hits, delta=0.0)[0] == 0.0
    assert epsilon_from_rates(np.array([0.1]), np.array([0.2]), delta=0.5)[0] == 0.0


@pytest.mark.parametrize("threshold", [-1.0, 0.0, 2.5])
def test_every_threshold_on_two_gaussians_shows_their_distance(threshold: float) -> None:
    hits, alarms = norm.sf(np.array([threshold]), loc=1.3), norm.sf(np.array([threshold]))
    assert gaussian_parameter(hits, alarms)[0] == pytest.approx(1.3)
    assert gaussian_parameter(np.array([0.0]), np.array([1.0]))[0] == 0.0


def test_identification_shows_the_epsilon_of_the_mechanism_that_is_named_best() -> None:
    """Generalised randomised response names the truth with probability e^eps / (e^eps + N - 1), and no more."""
    epsilon, candidates, trials = 3.0, 10, 10**9
    accuracy = math.exp(epsilon) / (math.exp(epsilon) + candidates - 1)
    shown = identification_bound(
        round(accuracy * trials), trials, candidates=candidates, delta=0.0, confidence=1 - 1e-6
    )
    assert shown == pytest.approx(epsilon, abs=1e-3)
    assert shown < epsilon


def test_identification_with_delta_holds_for_a_mechanism_that_fails_with_delta() -> None:
    """It tells the truth outright with probability delta, and is randomised response otherwise."""
    epsilon, delta, candidates, trials = 1.0, 0.05, 4, 10**9
    accuracy = delta + (1 - delta) * math.e / (math.e + candidates - 1)
    shown = identification_bound(
        round(accuracy * trials), trials, candidates=candidates, delta=delta, confidence=1 - 1e-6
    )
    assert 0.9 * epsilon < shown <= epsilon


def test_guessing_shows_nothing() -> None:
    assert identification_bound(100, 1000, candidates=10, delta=0.0, confidence=0.95) == 0.0
    assert identification_bound(0, 1000, candidates=10, delta=0.0, confidence=0.95) == 0.0
    assert identification_bound(5, 1000, candidates=10, delta=0.2, confidence=0.95) == 0.0


def test_nonsense_is_refused() -> None:
    with pytest.raises(ConfigError, match="at least 2 candidates"):
        identification_bound(1, 2, candidates=1, delta=0.0, confidence=0.95)
    with pytest.raises(DataError, match="3 of 2"):
        identification_bound(3, 2, candidates=4, delta=0.0, confidence=0.95)
    with pytest.raises(ConfigError, match="confidence"):
        identification_bound(1, 2, candidates=4, delta=0.0, confidence=1.0)
