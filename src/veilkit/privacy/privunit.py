"""PrivUnit: pure local privacy on the unit sphere (Bhowmick et al. 2018), with the parameters of Asi et al. 2022.

Given a unit vector x, draw a unit vector u from the cap {u: <u, x> >= gamma} with probability p, and from the rest of
the sphere otherwise, uniformly in each. With q the cap's share of the sphere the densities in and outside of it are
p / q and (1 - p) / (1 - q), whose ratio is exp(epsilon) for the p chosen here, whatever gamma is; gamma is
then chosen to point as close to x as possible.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np
from scipy.optimize import minimize_scalar
from scipy.special import betaincc, betainccinv, betaln, expit, logit

from veilkit.errors import ConfigError
from veilkit.privacy.cost import Cost, checked_dimension
from veilkit.privacy.mechanism import Array, Mechanism
from veilkit.privacy.noise import Noise

_GRID = 2.0**16
_AT_ONCE = 4096  # vectors drawn at once, to bound memory
_CANDIDATES = 400
_LEAST = 2.0**-30  # a rarer draw from outside of the cap could not be made with the right frequency


@dataclass(frozen=True, slots=True)
class Cap:
    """The parameters of one PrivUnit.

    gamma: cosine at the cap's edge. share: of the sphere that lies in the cap (q). chance: of drawing from the cap
    (p). mean: the expected cosine of u to x, by which u is divided.
    """

    gamma: float
    share: float
    chance: float
    mean: float


def cap(gamma: float, *, dimension: int, epsilon: float) -> Cap:
    """The cap at `gamma` >= 0 with the largest p that is epsilon-private; of mean 0 where that cannot be drawn."""
    half = (dimension - 1) / 2.0
    share = 0.5 * float(betaincc(0.5, half, gamma**2))  # <u, x>**2 has a Beta(1/2, (D-1)/2) distribution
    chance = float(expit(epsilon * (1.0 - 1e-12) + logit(share)))  # rounding must not exceed epsilon
    # The integral of t (1 - t**2)**((D-3)/2) from gamma to 1, over that of the density's whole weight.
    moment = np.exp(half * np.log1p(-(gamma**2)) - np.log(dimension - 1.0) - betaln(0.5, half))
    if share == 0.0 or 1.0 - chance < _LEAST:
        return Cap(gamma, share, chance, 0.0)
    mean = float(moment * (chance / share - (1.0 - chance) / (1.0 - share)))
    return Cap(gamma, share, chance, mean)


def best_cap(*, dimension: int, epsilon: float) -> Cap:
    """The cap whose draws point closest to x: the least variance of u / mean (Asi et al. 2022, Section 3)."""

    def closeness(gamma: float) -> float:
        return cap(gamma, dimension=dimension, epsilon=epsilon).mean

    gammas = np.linspace(0.0, 1.0, _CANDIDATES, endpoint=False)
    best = int(np.argmax([closeness(float(gamma)) for gamma in gammas]))
    if closeness(float(gammas[best])) == 0.0:
        raise ConfigError(
            f"epsilon {epsilon:g} is more than PrivUnit can draw in {dimension} dimensions: choose less of it"
        )
    around = (float(gammas[max(best - 1, 0)]), float(gammas[best] + gammas[1]))
    found = minimize_scalar(lambda gamma: -closeness(float(gamma)), bounds=around, method="bounded")
    gamma = max(float(found.x), float(gammas[best]), key=closeness)
    return cap(gamma, dimension=dimension, epsilon=epsilon)


@dataclass(frozen=True, kw_only=True)
class PrivUnit(Mechanism):
    """Pure epsilon on the unit sphere of D >= 2; by far the most useful of the sound mechanisms for matching.

    u is rounded to multiples of 2**-16 before it is released, divided by the mean cosine. The proof is for real
    numbers: double precision is wrong by some 1e-15, and rounding hides that but for about one release in ten
    million, of which the last digit on the grid may tell something. For noise without any such remark take
    `AnalyticGaussian` or `Laplace`, which opendp draws exactly.
    """

    name: ClassVar[str] = "privunit"

    def __post_init__(self) -> None:
        super().__post_init__()
        checked_dimension(self.dimension, least=2)
        _ = self.cap  # an epsilon that cannot be drawn is refused at once

    @cached_property
    def cap(self) -> Cap:
        """The parameters in use."""
        return best_cap(dimension=self.dimension, epsilon=self.epsilon)

    @property
    def cost(self) -> Cost:
        """Pure epsilon."""
        return Cost(self.epsilon)

    def _perturb(self, vectors: Array, noise: Noise) -> Array:
        parts = [self._draw(vectors[at : at + _AT_ONCE], noise) for at in range(0, len(vectors), _AT_ONCE)]
        return np.concatenate(parts) / self.cap.mean

    def _draw(self, vectors: Array, noise: Noise) -> Array:
        cosine = self._cosines(noise.uniform(len(vectors), 2))[:, None]
        side = noise.normal(*vectors.shape)
        side -= np.sum(side * vectors, axis=1, keepdims=True) * vectors
        side /= np.linalg.norm(side, axis=1, keepdims=True)
        drawn = cosine * vectors + np.sqrt(1.0 - cosine**2) * side
        return np.asarray(np.round(drawn * _GRID) / _GRID)

    def _cosines(self, uniform: Array) -> Array:
        """Cosines (N,) of u to x from uniform values (N, 2): in the cap or not, and where there, by inversion."""
        chosen = self.cap
        inside = uniform[:, 0] < chosen.chance
        # The chance that a uniform direction lies still closer to x.
        closer = np.where(
            inside, chosen.share * uniform[:, 1], chosen.share + (1.0 - chosen.share) * uniform[:, 1]
        )  # fmt: skip
        tail = np.minimum(closer, 1.0 - closer)
        cosine = np.sqrt(betainccinv(0.5, (self.dimension - 1) / 2.0, 2.0 * tail))
        return np.where(closer < 0.5, cosine, -cosine)
