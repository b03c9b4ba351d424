from __future__ import annotations

import math

import mpmath
import numpy as np
import pytest
import torch
from scipy.stats import ks_2samp, kstest

from veilkit.errors import ConfigError
from veilkit.privacy import AnalyticGaussian, Laplace, PrivUnit, SeededNoise, unit
from veilkit.privacy.privunit import best_cap, cap


def share_beyond(gamma: float, dimension: int) -> mpmath.mpf:
    """The share of the sphere beyond a cosine, by integration of (1 - t^2)^((D - 3) / 2)."""

    def weight(t: mpmath.mpf) -> mpmath.mpf:
        return (1 - t * t) ** (mpmath.mpf(dimension - 3) / 2)

    return mpmath.quad(weight, [gamma, (1 + gamma) / 2, 1]) / mpmath.quad(weight, [-1, 0, 1])


@pytest.mark.parametrize("dimension", [3, 8, 128, 512])
@pytest.mark.parametrize("epsilon", [0.1, 1.0, 8.0, 16.0])
def test_no_density_is_more_than_exp_epsilon_times_another(dimension: int, epsilon: float) -> None:
    found = best_cap(dimension=dimension, epsilon=epsilon)
    share = share_beyond(found.gamma, dimension)
    assert found.share == pytest.approx(float(share), rel=1e-9)
    ratio = mpmath.log(found.chance / share) - mpmath.log((1 - mpmath.mpf(found.chance)) / (1 - share))
    assert float(ratio) == pytest.approx(epsilon, rel=1e-9)


@pytest.mark.parametrize(("dimension", "epsilon"), [(3, 1.0), (16, 4.0), (128, 8.0)])
def test_the_mean_cosine_is_that_of_the_density(dimension: int, epsilon: float) -> None:
    found = best_cap(dimension=dimension, epsilon=epsilon)

    def weighted(t: mpmath.mpf) -> mpmath.mpf:
        return t * (1 - t * t) ** (mpmath.mpf(dimension - 3) / 2)

    whole = mpmath.quad(lambda t: (1 - t * t) ** (mpmath.mpf(dimension - 3) / 2), [-1, 0, 1])
    inside = mpmath.quad(weighted, [found.gamma, 1]) / whole
    outside = mpmath.quad(weighted, [-1, 0, found.gamma]) / whole
    mean = found.chance / found.share * inside + (1 - found.chance) / (1 - found.share) * outside
    assert found.mean == pytest.approx(float(mean), rel=1e-9)


@pytest.mark.parametrize(("dimension", "epsilon"), [(2, 1.0), (16, 4.0), (512, 16.0)])
def test_no_other_cap_points_closer(dimension: int, epsilon: float) -> None:
    others = [cap(float(g), dimension=dimension, epsilon=epsilon).mean for g in np.linspace(0, 0.999, 3001)]
    assert best_cap(dimension=dimension, epsilon=epsilon).mean >= max(others) * (1 - 1e-6)


@pytest.mark.parametrize(("dimension", "epsilon"), [(2, 1.0), (3, 4.0), (32, 2.0)])
def test_draws_have_the_density_that_was_proved(dimension: int, epsilon: float) -> None:
    mechanism = PrivUnit(dimension=dimension, epsilon=epsilon)
    x = unit(torch.arange(1.0, dimension + 1, dtype=torch.float64)[None])
    drawn = mechanism.release(x.repeat(8000, 1)).double().numpy() * mechanism.cap.mean
    assert np.abs(np.linalg.norm(drawn, axis=1) - 1.0).max() < 1e-4
    cosine = drawn @ x.numpy()[0]
    inside = cosine >= mechanism.cap.gamma
    spread = math.sqrt(mechanism.cap.chance * (1 - mechanism.cap.chance) / len(cosine))
    assert abs(inside.mean() - mechanism.cap.chance) < 5.5 * spread

    # Uniform in each part: as the directions of a Gaussian cloud are that fall there.
    cloud = np.random.default_rng(0).standard_normal((100_000, dimension))
    uniform = cloud[:, 0] / np.linalg.norm(cloud, axis=1)
    there = uniform >= mechanism.cap.gamma
    assert ks_2samp(cosine[inside], uniform[there]).pvalue > 1e-6
    assert ks_2samp(cosine[~inside], uniform[~there]).pvalue > 1e-6


def test_directions_around_the_input_are_uniform() -> None:
    mechanism = PrivUnit(dimension=3, epsilon=1.0)
    x = torch.tensor([[0.0, 0.0, 1.0]], dtype=torch.float64)
    drawn = mechanism.release(x.repeat(4000, 1)).double().numpy()
    angle = np.arctan2(drawn[:, 1], drawn[:, 0]) / (2 * math.pi) + 0.5
    assert kstest(angle, "uniform").pvalue > 1e-6


def test_outputs_lie_on_the_grid_that_hides_the_last_bits() -> None:
    mechanism = PrivUnit(dimension=8, epsilon=2.0)
    drawn = mechanism.release(unit(torch.randn(50, 8, generator=torch.Generator().manual_seed(0))))
    steps = drawn.double().numpy() * mechanism.cap.mean * 2**16
    assert np.abs(steps - np.round(steps)).max() < 0.02  # float32 after the division


def test_it_keeps_more_than_gaussian_and_laplace_noise_at_the_same_epsilon() -> None:
    x = unit(torch.randn(200, 512, generator=torch.Generator().manual_seed(0)))

    def closeness(mechanism: Laplace | PrivUnit | AnalyticGaussian) -> float:
        released = mechanism.release(x, noise=SeededNoise(0, insecure=True))
        return float(torch.nn.functional.cosine_similarity(released, x).mean())

    privunit = closeness(PrivUnit(dimension=512, epsilon=16.0))
    assert privunit > 2 * closeness(AnalyticGaussian(dimension=512, epsilon=16.0, delta=1e-6))
    assert privunit > 2 * closeness(Laplace(dimension=512, epsilon=16.0))


def test_an_epsilon_that_cannot_be_drawn_is_told_at_once() -> None:
    with pytest.raises(ConfigError, match="epsilon 200 is more than PrivUnit can draw in 2 dimensions"):
        PrivUnit(dimension=2, epsilon=200.0)
