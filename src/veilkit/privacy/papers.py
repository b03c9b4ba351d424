"""The papers' own noise, as they print it. No formal guarantee: the epsilon proved is infinite.

Both measure a sensitivity on data instead of bounding it, so the noise depends on the very vectors it should hide,
and nothing is known of a vector that was not measured. They are here to be compared with, under their own names.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar, Self

import torch
from torch import Tensor

from veilkit.errors import DataError
from veilkit.privacy.cost import UNPROVED, Cost, checked_delta, checked_positive
from veilkit.privacy.mechanism import Array, Mechanism, rows
from veilkit.privacy.noise import Noise
from veilkit.types import Guarantee, Level

_RANGE = 5.0  # the papers' sigma lies within that of the features' own standard deviation


@dataclass(frozen=True, kw_only=True)
class PaperMechanism(Mechanism):
    """Noise of a paper's calibration on vectors of any norm. `epsilon` is what the paper would print, not a proof."""

    sensitivity: float

    def __post_init__(self) -> None:
        super().__post_init__()
        checked_positive(self.sensitivity, "sensitivity")

    @property
    def cost(self) -> Cost:
        """Infinite: nothing is proved."""
        return UNPROVED

    def guarantee(self) -> Guarantee:
        """What the paper claims, with an infinite epsilon proved."""
        return Guarantee(
            text=f"{self.name}: no formal guarantee; epsilon as its paper prints it, from a sensitivity measured",
            level=Level.L0,
            epsilon_claimed=self.epsilon,
            epsilon_proved=math.inf,
        )

    def checked(self, vectors: Tensor) -> Array:
        """Vectors (N, D) as float64, once known to be finite; their norms are not bounded."""
        return rows(vectors, dimension=self.dimension)


@dataclass(frozen=True, kw_only=True)
class PeprPaper(PaperMechanism):
    """PEPR-Net's gallery noise (its Section 4.4): x + N(0, sigma**2 I) on features of any norm.

    sigma is Delta sqrt(2 ln(1.25 / delta)) / epsilon, Delta the largest distance seen between two features (its
    Equation 6), kept within 5 of the features' own standard deviation. The paper gives formula and range, not how
    one meets the other; keeping the one within the other is our reading.

    spread: standard deviation of the features' coordinates (its sigma_dataset).
    """

    name: ClassVar[str] = "pepr-paper"

    delta: float
    spread: float

    def __post_init__(self) -> None:
        super().__post_init__()
        checked_delta(self.delta)
        checked_positive(self.spread, "spread")

    @classmethod
    def measured(cls, features: Tensor, *, epsilon: float, delta: float) -> Self:
        """Calibrated to features (N, D), as the paper does."""
        return cls(
            dimension=features.shape[-1],
            epsilon=epsilon,
            delta=delta,
            sensitivity=_widest(features, norm=2),
            spread=float(features.double().std()),
        )

    @property
    def sigma(self) -> float:
        """Standard deviation of the noise on each coordinate."""
        formula = self.sensitivity * math.sqrt(2.0 * math.log(1.25 / self.delta)) / self.epsilon
        return min(max(formula, self.spread - _RANGE), self.spread + _RANGE)

    def _perturb(self, vectors: Array, noise: Noise) -> Array:
        return noise.add_gaussian(vectors, scale=self.sigma)


@dataclass(frozen=True, kw_only=True)
class DisguisePaper(PaperMechanism):
    """Disguise's identity noise: x + Laplace noise of scale Delta / epsilon, Delta the largest L1 distance seen.

    Its example (Delta 33.92, scale 2) is an epsilon of Delta / scale; the printed 67.84 is their product.

    >>> round(DisguisePaper.from_scale(dimension=512, sensitivity=33.92, scale=2.0).epsilon, 2)
    16.96
    """

    name: ClassVar[str] = "disguise-paper"

    @classmethod
    def measured(cls, features: Tensor, *, epsilon: float) -> Self:
        """Calibrated to features (N, D), as the paper does."""
        return cls(dimension=features.shape[-1], epsilon=epsilon, sensitivity=_widest(features, norm=1))

    @classmethod
    def from_scale(cls, *, dimension: int, sensitivity: float, scale: float) -> Self:
        """With noise of the scale (alpha or beta in the paper) given; epsilon follows."""
        checked_positive(scale, "scale")
        return cls(dimension=dimension, epsilon=sensitivity / scale, sensitivity=sensitivity)

    @property
    def scale(self) -> float:
        """Scale of the noise on each coordinate."""
        return self.sensitivity / self.epsilon

    def _perturb(self, vectors: Array, noise: Noise) -> Array:
        return noise.add_laplace(vectors, scale=self.scale)


def _widest(features: Tensor, *, norm: int) -> float:
    """The largest distance of two rows (N, D), a part of the rows at a time."""
    found = torch.from_numpy(rows(features))
    widest = max(float(torch.cdist(part, found, p=float(norm)).max()) for part in torch.split(found, 256))
    if widest == 0.0:
        raise DataError("a sensitivity cannot be measured on features that are all the same: give it more of them")
    return widest
