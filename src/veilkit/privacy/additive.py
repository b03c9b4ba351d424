"""The Gaussian mechanism with the least noise that its proof allows (Balle and Wang 2018)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

from veilkit.privacy.cost import Cost, checked_delta, checked_epsilon
from veilkit.privacy.mechanism import Array, Mechanism
from veilkit.privacy.noise import Noise

SENSITIVITY = 2.0  # the largest L2 distance of two unit vectors: one record replaced by any other
# Vectors are rounded to the noise's grid, which moves them by up to sqrt(D) 2**-41; shrunk by this much they stay
# within the sensitivity for any D below four million.
INSIDE = 1.0 - 1e-9


def gaussian_delta(multiplier: float, *, epsilon: float) -> float:
    """The least delta for which noise of `multiplier` times the sensitivity is (epsilon, delta)-private.

    Balle and Wang, Theorem 8: Phi(1/(2m) - epsilon m) - exp(epsilon) Phi(-1/(2m) - epsilon m).
    """
    from scipy.special import log_ndtr

    upper = float(log_ndtr(0.5 / multiplier - epsilon * multiplier))
    lower = float(log_ndtr(-0.5 / multiplier - epsilon * multiplier))
    # The difference of two nearly equal numbers, by way of their ratio. Rounding may push that past 1.
    return -math.exp(upper) * math.expm1(min(epsilon + lower - upper, 0.0))


def gaussian_multiplier(*, epsilon: float, delta: float) -> float:
    """The least noise, in units of the sensitivity, that is (epsilon, delta)-private."""
    from scipy.optimize import brentq

    checked_epsilon(epsilon)
    checked_delta(delta)

    def excess(log_multiplier: float) -> float:
        found = gaussian_delta(math.exp(log_multiplier), epsilon=epsilon)
        return math.log(max(found, 1e-320)) - math.log(delta)

    low = high = 0.0
    while excess(low) < 0.0:
        low -= 1.0
    while excess(high) > 0.0:
        high += 1.0
    root = math.exp(brentq(excess, low, high, xtol=1e-14, rtol=1e-14))
    return root * (1.0 + 1e-12)  # the search ends on either side of the root; too much noise is the safe one


@dataclass(frozen=True, kw_only=True)
class AnalyticGaussian(Mechanism):
    """x + N(0, sigma**2 I), with sigma the least that is (epsilon, delta)-private for unit vectors.

    The proof is for the continuous distribution. What is drawn lies on a grid of 2**-40, where the two differ, in
    total variation, by less than 1e-19 for vectors of up to 10,000 and sigma from 0.1; that is not in delta.

    >>> round(AnalyticGaussian(dimension=128, epsilon=1.0, delta=1e-5).sigma, 3)
    7.461
    """

    name: ClassVar[str] = "gaussian"

    delta: float

    def __post_init__(self) -> None:
        super().__post_init__()
        checked_delta(self.delta)

    @cached_property
    def sigma(self) -> float:
        """Standard deviation of the noise on each coordinate."""
        return SENSITIVITY * gaussian_multiplier(epsilon=self.epsilon, delta=self.delta)

    @property
    def cost(self) -> Cost:
        """(epsilon, delta), and the multiplier by which Gaussian releases compose."""
        return Cost(self.epsilon, self.delta, self.sigma / SENSITIVITY)

    def _perturb(self, vectors: Array, noise: Noise) -> Array:
        return noise.add_gaussian(vectors * INSIDE, scale=self.sigma)


@dataclass(frozen=True, kw_only=True)
class Laplace(Mechanism):
    """x + Laplace noise of scale 2 sqrt(D) / epsilon on each coordinate; pure (delta is 0).

    Two unit vectors in L2 are at most 2 sqrt(D) apart in L1: x and -x along the diagonal are.
    """

    name: ClassVar[str] = "laplace"

    @property
    def scale(self) -> float:
        """Scale of the noise on each coordinate; its standard deviation is sqrt(2) times that."""
        return 2.0 * math.sqrt(self.dimension) / self.epsilon

    @property
    def cost(self) -> Cost:
        """Pure epsilon."""
        return Cost(self.epsilon)

    def _perturb(self, vectors: Array, noise: Noise) -> Array:
        return noise.add_laplace(vectors * INSIDE, scale=self.scale)
