"""What a release costs, and what may be spent."""

from __future__ import annotations

import math
from dataclasses import dataclass

from veilkit.errors import ConfigError
from veilkit.privacy.parameters import checked_delta, checked_epsilon

_ROUNDING = 1e-9  # relative; two ways to compute one epsilon differ in the last digits


@dataclass(frozen=True, slots=True)
class Cost:
    """What is *proved* of one release of one vector: (epsilon, delta); infinite where nothing is.

    multiplier: for Gaussian noise its standard deviation over the sensitivity, which composes more tightly than
    (epsilon, delta) does; None for other mechanisms.
    """

    epsilon: float
    delta: float = 0.0
    multiplier: float | None = None

    @property
    def proved(self) -> bool:
        """Whether any finite epsilon stands behind it."""
        return math.isfinite(self.epsilon)


UNPROVED = Cost(math.inf)


@dataclass(frozen=True, slots=True, kw_only=True)
class Budget:
    """The most that one record, or one person, may lose over all releases together.

    epsilon may be math.inf, said in so many words, for studies of calibrations that prove nothing. delta may be 0,
    which leaves room for pure mechanisms only.
    """

    epsilon: float
    delta: float

    def __post_init__(self) -> None:
        if self.epsilon != math.inf:
            checked_epsilon(self.epsilon)
        if self.delta != 0.0 or isinstance(self.delta, bool):
            try:
                checked_delta(self.delta)
            except ConfigError as error:
                raise ConfigError(f"{error}; a budget for pure mechanisms only has delta 0") from None

    def covers(self, epsilon: float) -> bool:
        """Whether a composed epsilon, at this budget's delta, lies within it."""
        return epsilon <= self.epsilon * (1.0 + _ROUNDING)
