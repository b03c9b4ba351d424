"""Differential privacy for vectors: mechanisms, a ledger of what they cost, an auditor that tries to break them."""

from __future__ import annotations

from veilkit.errors import ConfigError
from veilkit.lookup import Lookup
from veilkit.privacy.additive import AnalyticGaussian, Laplace, gaussian_delta, gaussian_multiplier
from veilkit.privacy.auditor import (
    Finding,
    MechanismAudit,
    antipodal,
    audit_mechanism,
    companion,
    identification,
    identification_bound,
)
from veilkit.privacy.cost import Budget, Cost, affordable, composed_epsilon
from veilkit.privacy.ledger import Ledger, Spent
from veilkit.privacy.mechanism import Mechanism, unit
from veilkit.privacy.noise import Noise, SeededNoise, SystemNoise
from veilkit.privacy.papers import DisguisePaper, PeprPaper
from veilkit.privacy.privunit import PrivUnit
from veilkit.privacy.store import Entry

__all__ = [
    "MECHANISMS",
    "AnalyticGaussian",
    "Budget",
    "Cost",
    "DisguisePaper",
    "Entry",
    "Finding",
    "Laplace",
    "Ledger",
    "Mechanism",
    "MechanismAudit",
    "Noise",
    "PeprPaper",
    "PrivUnit",
    "SeededNoise",
    "Spent",
    "SystemNoise",
    "affordable",
    "antipodal",
    "audit_mechanism",
    "companion",
    "composed_epsilon",
    "gaussian_delta",
    "gaussian_multiplier",
    "identification",
    "identification_bound",
    "make_mechanism",
    "unit",
]

MECHANISMS: Lookup[type[Mechanism]] = Lookup(
    "mechanism", [(kind.name, kind) for kind in (AnalyticGaussian, Laplace, PrivUnit)]
)
"""The mechanisms with a proof."""


def make_mechanism(name: str, *, dimension: int, epsilon: float, delta: float) -> Mechanism:
    """The mechanism of that name. Pure ones ("laplace", "privunit") take a delta of 0 and no other.

    >>> make_mechanism("privunit", dimension=128, epsilon=8.0, delta=0.0).cost
    Cost(epsilon=8.0, delta=0.0, multiplier=None)
    """
    kind = MECHANISMS[name]
    if issubclass(kind, AnalyticGaussian):
        return kind(dimension=dimension, epsilon=epsilon, delta=delta)
    if delta != 0.0:
        raise ConfigError(f"{name} is a pure mechanism, whose delta is 0, but got delta {delta!r}")
    return kind(dimension=dimension, epsilon=epsilon)
