"""The Laplace mechanism in L1: the textbook's pure mechanism, as a reference. Many dimensions drown in its noise."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

from veilkit.privacy.cost import Cost
from veilkit.privacy.gaussian import INSIDE
from veilkit.privacy.mechanism import Array, Mechanism
from veilkit.privacy.noise import Noise


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
