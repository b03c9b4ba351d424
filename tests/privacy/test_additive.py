"""Noise on features: Laplace and Gaussian, and how it is drawn."""

from __future__ import annotations

import itertools
import math
import os
import subprocess
import sys

import mpmath
import numpy as np
import opendp.prelude as dp
import pytest
import torch
from dp_accounting import get_sigma_gaussian
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import kstest

from veilkit.errors import ConfigError
from veilkit.privacy import AnalyticGaussian, Laplace, SeededNoise, SystemNoise, gaussian_delta, gaussian_multiplier


@pytest.mark.parametrize("epsilon", [0.01, 0.1, 0.5, 1.0, 2.0, 8.0, 16.0, 64.0])
@pytest.mark.parametrize("delta", [1e-12, 1e-6, 1e-3, 0.1])
def test_sigma_is_that_of_dp_accounting(epsilon: float, delta: float) -> None:
    assert gaussian_multiplier(epsilon=epsilon, delta=delta) == pytest.approx(
        get_sigma_gaussian(epsilon, delta), rel=1e-6
    )


def exact_delta(multiplier: float, epsilon: float) -> mpmath.mpf:
    """Balle and Wang's Theorem 8 in 60 digits."""
    with mpmath.workdps(60):
        m, e = mpmath.mpf(multiplier), mpmath.mpf(epsilon)
        return mpmath.ncdf(1 / (2 * m) - e * m) - mpmath.exp(e) * mpmath.ncdf(-1 / (2 * m) - e * m)


@given(epsilon=st.floats(1e-3, 100.0), delta=st.floats(1e-12, 0.5))
def test_sigma_is_enough_and_hardly_more(epsilon: float, delta: float) -> None:
    multiplier = gaussian_multiplier(epsilon=epsilon, delta=delta)
    assert exact_delta(multiplier, epsilon) <= delta * (1 + 1e-9)
    assert exact_delta(multiplier * (1 - 1e-6), epsilon) > delta
    assert gaussian_delta(multiplier, epsilon=epsilon) == pytest.approx(delta, rel=1e-6)


def test_less_noise_than_the_classic_formula_needs() -> None:
    classic = 2.0 * math.sqrt(2.0 * math.log(1.25 / 1e-5)) / 0.9
    assert AnalyticGaussian(dimension=3, epsilon=0.9, delta=1e-5).sigma < classic


def test_the_noise_drawn_is_gaussian_of_that_sigma_in_every_coordinate() -> None:
    mechanism = AnalyticGaussian(dimension=2, epsilon=1.0, delta=1e-5)
    vectors = torch.tensor([[0.6, -0.8]], dtype=torch.float64).repeat(4000, 1)
    noise = (mechanism.release(vectors).double() - vectors).numpy() / mechanism.sigma
    assert kstest(noise[:, 0], "norm").pvalue > 1e-6
    assert kstest(noise[:, 1], "norm").pvalue > 1e-6
    assert abs(np.corrcoef(noise.T)[0, 1]) < 5 / math.sqrt(4000)


def test_opendp_proves_the_same_of_the_noise_that_it_adds() -> None:
    mechanism = AnalyticGaussian(dimension=128, epsilon=1.0, delta=1e-5)
    dp.enable_features("contrib")
    domain = dp.vector_domain(dp.atom_domain(T=float, nan=False), size=128)
    added = dp.m.make_gaussian(domain, dp.l2_distance(T=float), scale=mechanism.sigma, k=-40)
    # Two vectors shrunk to stay inside are this far apart; rounding to the grid, which opendp counts, is in that.
    rho = added.map(2.0 * (1.0 - 1e-9))
    multiplier = mechanism.cost.multiplier
    assert multiplier is not None
    assert rho <= 0.5 / multiplier**2
    assert rho == pytest.approx(0.5 / multiplier**2, rel=1e-8)


@pytest.mark.parametrize("dimension", [1, 3, 128, 512])
@pytest.mark.parametrize("epsilon", [0.5, 16.0])
def test_opendp_proves_epsilon_for_the_widest_pair(dimension: int, epsilon: float) -> None:
    dp.enable_features("contrib")
    domain = dp.vector_domain(dp.atom_domain(T=float, nan=False), size=dimension)
    scale = Laplace(dimension=dimension, epsilon=epsilon).scale
    added = dp.m.make_laplace(domain, dp.l1_distance(T=float), scale=scale, k=-40)
    proved = added.map(2.0 * math.sqrt(dimension) * (1.0 - 1e-9))
    assert proved <= epsilon
    assert proved == pytest.approx(epsilon, rel=1e-8)


def test_no_pair_of_unit_vectors_is_wider_apart_in_l1_than_the_diagonal() -> None:
    vectors = np.random.default_rng(0).standard_normal((60, 5))
    vectors = np.concatenate(
        [vectors / np.linalg.norm(vectors, axis=1, keepdims=True), np.ones((1, 5)) / math.sqrt(5)]
    )
    widest = max(np.abs(one + other).sum() for one, other in itertools.product(vectors, vectors))
    assert widest == pytest.approx(2.0 * math.sqrt(5))


def test_the_noise_drawn_is_laplace_of_that_scale() -> None:
    mechanism = Laplace(dimension=2, epsilon=1.0)
    vectors = torch.tensor([[0.6, -0.8]], dtype=torch.float64).repeat(4000, 1)
    noise = (mechanism.release(vectors).double() - vectors).numpy() / mechanism.scale
    assert kstest(noise[:, 0], "laplace").pvalue > 1e-6
    assert kstest(noise[:, 1], "laplace").pvalue > 1e-6


def test_seeded_noise_must_be_called_insecure() -> None:
    with pytest.raises(ConfigError, match="insecure=True"):
        SeededNoise(7)
    assert not SeededNoise(7, insecure=True).secure
    assert SystemNoise().secure


def test_sums_lie_on_the_grid_whatever_the_last_bits_of_the_values_were() -> None:
    values = np.full((4, 3), 1.0 / 3.0)
    for noisy in (SystemNoise().add_gaussian(values, scale=0.7), SystemNoise().add_laplace(values, scale=0.7)):
        assert noisy.shape == values.shape
        steps = noisy * 2.0**40
        assert (steps == np.round(steps)).all()


def test_more_values_than_go_at_once_keep_their_places(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("veilkit.privacy.noise._AT_ONCE", 8)
    values = 1000.0 * np.arange(30.0).reshape(10, 3)
    assert np.abs(SystemNoise().add_laplace(values, scale=0.1) - values).max() < 10.0


def test_uniform_and_normal_values_are_that() -> None:
    noise = SystemNoise()
    uniform = noise.uniform(50, 100)
    assert uniform.min() > 0.0
    assert uniform.max() < 1.0
    assert kstest(uniform.ravel(), "uniform").pvalue > 1e-6
    assert kstest(noise.normal(50, 100).ravel(), "norm").pvalue > 1e-6


def test_the_bytes_are_the_operating_systems(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []

    def urandom(count: int) -> bytes:
        asked.append(count)
        return bytes(count)

    monkeypatch.setattr(os, "urandom", urandom)
    assert (SystemNoise().uniform(3) == 0.5 * 2.0**-53).all()
    assert asked == [24]


_FORKS = """
import os
import numpy as np
from veilkit.privacy.noise import SystemNoise

def draw():
    return SystemNoise().add_gaussian(np.zeros(2), scale=1.0).tolist(), SystemNoise().uniform(2).tolist()

draw()  # so that whatever there is to inherit is there
for _ in range(3):
    if not os.fork():
        print(draw(), flush=True)
        os._exit(0)
    os.wait()
print(draw())
"""


def test_a_forked_process_draws_noise_of_its_own() -> None:
    done = subprocess.run([sys.executable, "-c", _FORKS], capture_output=True, text=True, check=True, timeout=300)
    assert len(set(done.stdout.splitlines())) == 4
