"""Privacy parameters, checked: a wrong epsilon is an error here and never a weaker guarantee later."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from veilkit.errors import ConfigError


def checked_epsilon(epsilon: float) -> float:
    """Epsilon, once known to be a finite number above 0."""
    if not _is_number(epsilon) or not 0.0 < epsilon < math.inf:
        raise ConfigError(f"epsilon must be a finite number above 0, but got {epsilon!r}; smaller is more private")
    return float(epsilon)


def checked_delta(delta: float) -> float:
    """Delta of an approximate mechanism, once known to lie strictly between 0 and 1."""
    if not _is_number(delta) or not 0.0 < delta < 1.0:
        raise ConfigError(
            f"delta must lie strictly between 0 and 1, but got {delta!r}: it is the chance of no protection at all, "
            "so choose far less than one in the number of people, such as 1e-6"
        )
    return float(delta)


def checked_dimension(dimension: int, *, least: int = 1) -> int:
    """The length of the vectors, once known to be a whole number of at least `least`."""
    if isinstance(dimension, bool) or not isinstance(dimension, int) or dimension < least:
        raise ConfigError(f"dimension must be a whole number of at least {least}, but got {dimension!r}")
    return dimension


def checked_positive(value: float, name: str) -> float:
    """A number, once known to be finite and above 0."""
    if not _is_number(value) or not 0.0 < value < math.inf:
        raise ConfigError(f"{name} must be a finite number above 0, but got {value!r}")
    return float(value)


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


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


_FINEST = 1e-4  # dp-accounting's own step between privacy losses
_STEPS = 100_000  # at most about so many steps to the sum of all epsilons


def composed_epsilon(costs: Mapping[Cost, int], *, delta: float) -> float:
    """The epsilon, at `delta`, of that many releases of each cost about one record or one person.

    Gaussian releases compose exactly, to one Gaussian; mixtures by privacy loss distributions, whose rounding is
    upwards. Sums of epsilons and deltas are always true as well, so the smallest of these counts.
    """
    held = frozenset((cost, count) for cost, count in costs.items() if count)
    if any(count < 0 for _, count in held):
        raise ConfigError(f"releases cannot be negative, but got {dict(costs)}")
    return _composed(held, delta)


def affordable(cost: Cost, budget: Budget) -> int | float:
    """How many releases of one cost a budget allows; infinitely many if the budget is infinite."""
    if math.isinf(budget.epsilon):
        return math.inf

    def fits(count: int) -> bool:
        return budget.covers(composed_epsilon({cost: count}, delta=budget.delta))

    if not fits(1):
        return 0
    low, high = 1, 2
    while fits(high):
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if fits(middle) else (low, middle)
    return low


@lru_cache(maxsize=4096)
def _composed(held: frozenset[tuple[Cost, int]], delta: float) -> float:
    if not held:
        return 0.0
    if not all(cost.proved for cost, _ in held):
        return math.inf
    ways = [math.inf]
    if sum(count * cost.delta for cost, count in held) <= delta * (1.0 + 1e-12):
        ways.append(sum(count * cost.epsilon for cost, count in held))
    if delta > 0.0:
        ways.append(_gaussian(held, delta) if all(cost.multiplier for cost, _ in held) else _mixed(held, delta))
    return min(ways)


def _gaussian(held: frozenset[tuple[Cost, int]], delta: float) -> float:
    from dp_accounting import get_epsilon_gaussian

    # Releases of independent Gaussian noise tell as much as one, with squared distances (in sigmas) added up.
    precision = sum(count / cost.multiplier**2 for cost, count in held if cost.multiplier)
    return float(get_epsilon_gaussian(1.0 / math.sqrt(precision), delta))


def _mixed(held: frozenset[tuple[Cost, int]], delta: float) -> float:
    from dp_accounting.pld import privacy_loss_distribution as pld

    total = sum(count * cost.epsilon for cost, count in held)
    step = max(_FINEST, total / _STEPS)
    whole = pld.identity(value_discretization_interval=step)
    for cost, count in sorted(held, key=repr):
        whole = whole.compose(_losses(cost, step).self_compose(count))
    return float(whole.get_epsilon_for_delta(delta))


def _losses(cost: Cost, step: float) -> Any:
    from dp_accounting.pld import common
    from dp_accounting.pld import privacy_loss_distribution as pld

    if cost.multiplier:
        return pld.from_gaussian_mechanism(cost.multiplier, value_discretization_interval=step)
    # Any mechanism with that (epsilon, delta) tells no more than this distribution does.
    parameters = common.DifferentialPrivacyParameters(cost.epsilon, cost.delta)
    return pld.from_privacy_parameters(parameters, value_discretization_interval=step)
