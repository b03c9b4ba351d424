"""Learning-rate schedules as pure functions of the epoch, which may be a fraction."""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import StrEnum

from veilkit.errors import ConfigError


class Decay(StrEnum):
    """How the rate falls after the warm-up."""

    STEPS = "steps"
    COSINE = "cosine"
    EXPONENTIAL = "exponential"


@dataclass(frozen=True, slots=True)
class Schedule:
    """Factor on the base learning rate.

    A linear warm-up from a tenth over `warmup` epochs, then: steps multiplies by 0.1 at each of `milestones` (shares
    of all epochs; AGW: 40 and 70 of 120), cosine falls to zero at the end, exponential falls evenly (in logarithm) to
    a hundredth.
    """

    epochs: int
    warmup: float = 0.0
    decay: Decay = Decay.COSINE
    milestones: tuple[float, ...] = (40 / 120, 70 / 120)

    def __post_init__(self) -> None:
        if self.epochs < 1 or not 0 <= self.warmup <= self.epochs:
            raise ConfigError(f"expected 0 <= warmup <= epochs, but got {self.warmup} and {self.epochs}")

    def factor(self, epoch: float) -> float:
        """The factor at `epoch`, in [0, epochs]."""
        if epoch < self.warmup:
            return 0.1 + 0.9 * epoch / self.warmup
        if self.decay is Decay.STEPS:
            return math.prod(0.1 for milestone in self.milestones if epoch >= milestone * self.epochs)
        share = (epoch - self.warmup) / max(self.epochs - self.warmup, 1e-9)
        if self.decay is Decay.EXPONENTIAL:
            return math.exp(share * math.log(0.01))
        return 0.5 * (1 + math.cos(math.pi * min(share, 1.0)))
