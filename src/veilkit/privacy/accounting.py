"""What several releases cost together: dp-accounting's composition, and plain sums where they are tighter.

The parameters of a later release must not be chosen by looking at earlier outputs; all of this holds for costs that
are fixed beforehand.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from veilkit.errors import ConfigError
from veilkit.privacy.cost import Budget, Cost

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
