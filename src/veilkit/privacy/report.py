"""A mechanism's claim beside what is proved and what was measured: the three numbers that belong together."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import torch

from veilkit.privacy.auditor import CONFIDENCE, Finding, antipodal, companion, identification
from veilkit.privacy.gaussian import AnalyticGaussian
from veilkit.privacy.mechanism import Mechanism
from veilkit.privacy.noise import Noise

_CANDIDATES = 8


@dataclass(frozen=True, slots=True)
class MechanismAudit:
    """Epsilon claimed, epsilon proved (infinite without a proof) and the largest epsilon that attacks have shown."""

    mechanism: str
    claimed: float
    proved: float
    delta: float
    findings: tuple[Finding, ...]

    @property
    def lower_bound(self) -> float:
        """The largest epsilon shown."""
        return max(finding.epsilon for finding in self.findings)

    @property
    def refuted(self) -> bool:
        """Whether an attack has shown more than is claimed: then the claim is wrong."""
        return any(finding.refutes(self.claimed) for finding in self.findings)

    def __str__(self) -> str:
        proved = "infinite (no formal guarantee)" if math.isinf(self.proved) else f"{self.proved:.4g}"
        by = max(self.findings, key=lambda finding: finding.epsilon)
        return (
            f"{self.mechanism}: epsilon claimed {self.claimed:.4g}, proved {proved}, lower bound {by.epsilon:.4g} "
            f"({by.attack}, {by.draws:,} draws), delta {self.delta:g}{'; REFUTED' if self.refuted else ''}"
        )


def audit_mechanism(
    mechanism: Mechanism, *, draws: int, noise: Noise | None = None, confidence: float = CONFIDENCE, seed: int = 0
) -> MechanismAudit:
    """Attack a mechanism in every way there is; together the findings hold with `confidence`.

    draws: releases of each input. noise: the operating system's unless told otherwise. seed: of the attacker's own
    choices. A paper's claim is pure where it names no delta.
    """
    delta = float(getattr(mechanism, "delta", 0.0))
    gaussian = isinstance(mechanism, AnalyticGaussian)
    each = 1.0 - (1.0 - confidence) / 3

    def release(vectors: torch.Tensor) -> torch.Tensor:
        return mechanism.release(vectors, noise=noise)

    generator = np.random.default_rng(seed)
    dimension = mechanism.dimension
    candidates = torch.from_numpy(generator.standard_normal((_CANDIDATES, dimension)))
    candidates /= candidates.norm(dim=1, keepdim=True)
    findings = [
        antipodal(release, dimension=dimension, delta=delta, draws=draws, gaussian=gaussian, confidence=each),
        companion(release, dimension=dimension, delta=delta, draws=draws, confidence=each),
        identification(release, candidates, delta=delta, trials=draws, generator=generator, confidence=each),
    ]
    return MechanismAudit(mechanism.name, mechanism.epsilon, mechanism.cost.epsilon, delta, tuple(findings))
