from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.stats import binomtest, norm

from veilkit.errors import ConfigError, DataError
from veilkit.privacy import identification_bound
from veilkit.privacy.bounds import epsilon_from_rates, gaussian_parameter, rates_at_least, rates_at_most


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
