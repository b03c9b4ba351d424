"""Differential privacy for vectors: mechanisms, a ledger of what they cost, an auditor that tries to break them."""

from __future__ import annotations

from veilkit.privacy.accounting import affordable, composed_epsilon
from veilkit.privacy.auditor import Finding, antipodal, companion, identification
from veilkit.privacy.bounds import identification_bound
from veilkit.privacy.cost import Budget, Cost
from veilkit.privacy.gaussian import AnalyticGaussian, gaussian_delta, gaussian_multiplier
from veilkit.privacy.laplace import Laplace
from veilkit.privacy.ledger import Ledger
from veilkit.privacy.mechanism import Mechanism
from veilkit.privacy.noise import Noise, SeededNoise, SystemNoise
from veilkit.privacy.papers import DisguisePaper, PeprPaper
from veilkit.privacy.privunit import PrivUnit
from veilkit.privacy.report import MechanismAudit, audit_mechanism
from veilkit.privacy.sound import MECHANISMS, make_mechanism
from veilkit.privacy.statement import Entry, Spent
from veilkit.privacy.vectors import unit

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
