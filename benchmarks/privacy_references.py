"""Sigma of the analytic Gaussian, and composed epsilons, against references that share no code with ours."""

from __future__ import annotations

import math
from collections.abc import Mapping
from itertools import product

import dp_accounting
import mpmath
from dp_accounting.pld import PLDAccountant

from claims import record
from veilkit.privacy import AnalyticGaussian, Cost, Laplace, PrivUnit, composed_epsilon

EPSILONS = (0.01, 0.1, 0.5, 1.0, 2.0, 8.0, 16.0, 64.0)
DELTAS = (1e-12, 1e-6, 1e-3, 0.1)
DIGITS = 60
DIMENSION = 128
DELTA = 1e-5
COMMAND = "python benchmarks/privacy_references.py"
GAUSSIAN = AnalyticGaussian(dimension=DIMENSION, epsilon=1.0, delta=1e-6).cost
WEAKER = AnalyticGaussian(dimension=DIMENSION, epsilon=0.5, delta=1e-7).cost
LAPLACE = Laplace(dimension=DIMENSION, epsilon=0.3).cost
PRIVUNIT = PrivUnit(dimension=DIMENSION, epsilon=2.0).cost
RELEASES: tuple[Mapping[Cost, int], ...] = (
    {GAUSSIAN: 1}, {GAUSSIAN: 2}, {GAUSSIAN: 7}, {GAUSSIAN: 30}, {LAPLACE: 2}, {LAPLACE: 20}, {PRIVUNIT: 5},
    {GAUSSIAN: 1, WEAKER: 2}, {GAUSSIAN: 1, WEAKER: 2, LAPLACE: 4}, {GAUSSIAN: 3, PRIVUNIT: 2},
)  # fmt: skip


def solved_sigma(epsilon: float, delta: float) -> float:
    """The root of Balle and Wang's Theorem 8 by bisection in 60 digits, for unit vectors (sensitivity 2)."""
    with mpmath.workdps(DIGITS):
        e, wanted = mpmath.mpf(epsilon), mpmath.mpf(delta)

        def excess(log_multiplier: mpmath.mpf) -> mpmath.mpf:
            m = mpmath.exp(log_multiplier)
            found = mpmath.ncdf(1 / (2 * m) - e * m) - mpmath.exp(e) * mpmath.ncdf(-1 / (2 * m) - e * m)
            return mpmath.log(found) - mpmath.log(wanted)

        low, high = mpmath.mpf(-8), mpmath.mpf(8)
        for _ in range(120):
            middle = (low + high) / 2
            low, high = (middle, high) if excess(middle) > 0 else (low, middle)
        return float(2 * mpmath.exp(low))


def sigma_difference() -> tuple[float, float]:
    """The largest relative difference from the 60 digits, and from dp-accounting's own."""
    exact, other = [], []
    for epsilon, delta in product(EPSILONS, DELTAS):
        ours = AnalyticGaussian(dimension=DIMENSION, epsilon=epsilon, delta=delta).sigma
        exact.append(abs(ours / solved_sigma(epsilon, delta) - 1))
        other.append(abs(ours / (2 * dp_accounting.get_sigma_gaussian(epsilon, delta)) - 1))
    return max(exact), max(other)


def reference(releases: Mapping[Cost, int]) -> float:
    """What dp-accounting's privacy loss distributions make of them, under replacing one record."""
    accountant = PLDAccountant(dp_accounting.NeighboringRelation.REPLACE_ONE)
    for cost, count in releases.items():
        if cost.multiplier is not None:  # its noise is counted for adding one record; replacing is twice as far
            event = dp_accounting.GaussianDpEvent(2.0 * cost.multiplier)
        else:  # of all pure mechanisms, that of two answers tells most
            event = dp_accounting.RandomizedResponseDpEvent(2.0 / (1.0 + math.exp(cost.epsilon)), 2)
        for _ in range(count):  # with a count, dp-accounting 0.6 composes randomised response only once
            accountant.compose(event)
    return float(accountant.get_epsilon(DELTA))


def composition_differences() -> list[float]:
    """Relative, signed: above 0 where ours is the larger one."""
    found = []
    for releases in RELEASES:
        ours, theirs = composed_epsilon(releases, delta=DELTA), reference(releases)
        print(f"{sum(releases.values()):>3} releases: ours {ours:.6f}, dp-accounting {theirs:.6f}", flush=True)
        found.append(ours / theirs - 1)
    return found


def main() -> None:
    exact, other = sigma_difference()
    record(
        id="privacy-sigma",
        claim="Analytic Gaussian: largest relative difference of sigma from an independent reference",
        figure=float(f"{max(exact, other):.1e}"),
        bar="<= 1e-06",
        unit="",
        data="none: a formula",
        scale=f"epsilon {', '.join(f'{e:g}' for e in EPSILONS)}; delta {', '.join(f'{d:g}' for d in DELTAS)}",
        seed=None,
        command=COMMAND,
        note=f"{exact:.1e} from the root of Theorem 8 in {DIGITS} digits (mpmath), {other:.1e} from dp-accounting's",
    )
    differences = composition_differences()
    record(
        id="privacy-composition",
        claim="Composed releases: largest relative difference of epsilon from dp-accounting's loss distributions",
        figure=float(f"{max(map(abs, differences)):.1e}"),
        bar="<= 0.001",
        unit="",
        data="none: a formula",
        scale=f"{len(RELEASES)} sets of 1 to 30 releases, Gaussian, Laplace, PrivUnit and mixtures; delta {DELTA:g}",
        seed=None,
        command=COMMAND,
        note=f"ours minus theirs from {min(differences):.1e} to {max(differences):.1e}; theirs are discretised. "
        "Gaussian releases alone compose in closed form, all others through dp-accounting itself",
    )


if __name__ == "__main__":
    main()
