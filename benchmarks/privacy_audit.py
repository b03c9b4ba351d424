"""The auditor of mechanisms against sound ones, which it must not accuse, and planted bugs, which it must."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from itertools import cycle, islice, product
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from claims import record
from veilkit.privacy import (
    AnalyticGaussian,
    Budget,
    Finding,
    Laplace,
    Ledger,
    Mechanism,
    MechanismAudit,
    PrivUnit,
    SystemNoise,
    antipodal,
    audit_mechanism,
    companion,
)
from veilkit.privacy.mechanism import rows

RUNS, DRAWS = 200, 6000
BUG_DRAWS = 40_000
DELTA = 1e-5
EPSILONS = (0.5, 1.0, 2.0, 8.0)
BUG_EPSILONS = (0.5, 1.0, 2.0)
PLANE = 2  # dimensions for noise that is independent in each; PrivUnit's depends on how many there are
SPHERE = 128


def sound(epsilon: float) -> list[Mechanism]:
    return [
        AnalyticGaussian(dimension=PLANE, epsilon=epsilon, delta=DELTA),
        Laplace(dimension=PLANE, epsilon=epsilon),
        PrivUnit(dimension=SPHERE, epsilon=epsilon),
    ]


def audits(runs: int, draws: int) -> list[MechanismAudit]:
    """Audits of sound mechanisms, each with noise of its own from the operating system."""
    mechanisms = [sound(epsilon)[kind] for epsilon, kind in product(EPSILONS, range(3))]
    return [
        audit_mechanism(mechanism, draws=draws, seed=run)
        for run, mechanism in enumerate(islice(cycle(mechanisms), runs))
    ]


class Unbounded(AnalyticGaussian):
    """Takes features as they come: the sensitivity of 2 is not true of them."""

    def checked(self, vectors: Tensor) -> np.ndarray:
        return rows(vectors, dimension=self.dimension)


class HalfSigma(AnalyticGaussian):
    """Somebody took the sensitivity for 1."""

    @property
    def sigma(self) -> float:
        return super().sigma / 2.0


class NoDelta(AnalyticGaussian):
    """Noise of sensitivity / epsilon, as if it were Laplace's: delta does not enter."""

    @property
    def sigma(self) -> float:
        return 2.0 / self.epsilon


class RepeatedNoise(SystemNoise):
    """Every second vector gets the noise of the one before it."""

    def add_gaussian(self, values: np.ndarray, *, scale: float) -> np.ndarray:
        return values + np.repeat(super().add_gaussian(np.zeros_like(values[::2]), scale=scale), 2, axis=0)

    def uniform(self, *shape: int) -> np.ndarray:
        return np.repeat(super().uniform(shape[0] // 2, *shape[1:]), 2, axis=0)


def double(kind: type[Laplace] | type[PrivUnit], dimension: int, epsilon: float) -> Mechanism:
    """What is claimed to be `epsilon` is made with twice that."""
    return kind(dimension=dimension, epsilon=2.0 * epsilon)


@dataclass(frozen=True)
class Bug:
    """How an attack is made on a bug under a claim of epsilon, with so many draws; it returns what it finds."""

    name: str
    attack: Callable[[float, int], Finding]


def _gaussian(kind: type[AnalyticGaussian], *, norm: float = 1.0) -> Callable[[float, int], Finding]:
    def attack(epsilon: float, draws: int) -> Finding:
        faulty = kind(dimension=PLANE, epsilon=epsilon, delta=DELTA)
        return antipodal(faulty.release, dimension=PLANE, delta=DELTA, draws=draws, norm=norm, gaussian=True)

    return attack


def _doubled(kind: type[Laplace] | type[PrivUnit], dimension: int) -> Callable[[float, int], Finding]:
    def attack(epsilon: float, draws: int) -> Finding:
        return antipodal(double(kind, dimension, epsilon).release, dimension=dimension, delta=0.0, draws=draws)

    return attack


def _reused(make: Callable[[float], Mechanism], delta: float) -> Callable[[float, int], Finding]:
    """Release through a real ledger, whose books are in order all the while: each record is charged epsilon, once."""

    def attack(epsilon: float, draws: int) -> Finding:
        mechanism = make(epsilon)
        with (
            tempfile.TemporaryDirectory() as folder,
            Ledger(
                Path(folder, "ledger"),
                budget=Budget(epsilon=epsilon, delta=delta),
                per="record",
                noise=RepeatedNoise(),
            ) as ledger,
        ):

            def release(vectors: Tensor) -> Tensor:
                start = len(ledger)
                return ledger.release(mechanism, vectors, records=[str(start + row) for row in range(len(vectors))])

            found = companion(release, dimension=mechanism.dimension, delta=delta, draws=draws)
            spent = ledger.worst()
            assert spent is not None
            assert spent.epsilon <= epsilon * (1 + 1e-9), "the ledger must be silent for this bug"
        return found

    return attack


BUGS = (
    Bug("no normalisation", _gaussian(Unbounded, norm=10.0)),
    Bug("sigma halved", _gaussian(HalfSigma)),
    Bug(
        "noise reused",
        _reused(lambda epsilon: AnalyticGaussian(dimension=PLANE, epsilon=epsilon, delta=DELTA), DELTA),
    ),
    Bug("noise reused", _reused(lambda epsilon: PrivUnit(dimension=SPHERE, epsilon=epsilon), 0.0)),
    Bug("delta ignored", _gaussian(NoDelta)),
    Bug("epsilon doubled", _doubled(Laplace, PLANE)),
    Bug("epsilon doubled", _doubled(PrivUnit, SPHERE)),
)


def caught(draws: int, epsilons: tuple[float, ...] = BUG_EPSILONS) -> dict[str, bool]:
    """For each bug whether it is caught under every claim and in every mechanism that has it."""
    found: dict[str, bool] = {}
    for bug, epsilon in product(BUGS, epsilons):
        finding = bug.attack(epsilon, draws)
        print(f"{bug.name:<18} claimed {epsilon:<5g} shown {finding.epsilon:<8.4g} by {finding.attack}", flush=True)
        found[bug.name] = found.get(bug.name, True) and finding.refutes(epsilon)
    return found


def main() -> None:
    torch.set_num_threads(1)
    runs = audits(RUNS, DRAWS)
    for name, epsilon in product(("gaussian", "laplace", "privunit"), EPSILONS):
        bounds = [run.lower_bound for run in runs if (run.mechanism, run.claimed) == (name, epsilon)]
        print(f"{name:<10} claimed {epsilon:<4g} highest bound of {len(bounds)} runs {max(bounds):.4g}")
    tightest = max(run.lower_bound / run.claimed for run in runs)
    bugs = caught(BUG_DRAWS)
    about = {"data": "antipodal, companion and random unit vectors", "seed": None}
    record(
        id="privacy-bounds",
        claim="Audits of sound mechanisms that show more than the epsilon claimed, at confidence 1 - 1e-6",
        figure=sum(run.refuted for run in runs),
        bar="== 0",
        unit="audits",
        scale=f"{RUNS} audits of 3 mechanisms at epsilon {', '.join(f'{e:g}' for e in EPSILONS)}; {DRAWS:,} draws",
        command="python benchmarks/privacy_audit.py",
        note=f"the highest lower bound is {tightest:.0%} of its claim; noise of the operating system, so no seed",
        **about,
    )
    record(
        id="privacy-bugs",
        claim="Planted bugs in mechanisms that the auditor catches at each claimed epsilon of 0.5, 1 and 2",
        figure=sum(bugs.values()),
        bar="== 5",
        unit="of 5",
        scale=f"{', '.join(bugs)}; epsilon {', '.join(f'{e:g}' for e in BUG_EPSILONS)}; {BUG_DRAWS:,} draws",
        command="python benchmarks/privacy_audit.py",
        **about,
    )


if __name__ == "__main__":
    main()
