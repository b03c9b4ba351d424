"""The auditor of mechanisms: attacks a release as a black box, and says which epsilon it cannot have.

It releases x and -x many times over, the pair on which every mechanism here is weakest, and looks for an event that
is likely for the one and unlikely for the other. Half of the draws choose the event, the other half count it, so that
searching does not spoil the confidence. A bound above the claim proves the claim wrong; one below proves nothing.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.special import ndtri
from scipy.stats import beta
from torch import Tensor

from veilkit.errors import ConfigError, DataError
from veilkit.privacy.additive import AnalyticGaussian
from veilkit.privacy.mechanism import Mechanism
from veilkit.privacy.noise import Noise

Array = NDArray[np.float64]
Release: TypeAlias = Callable[[Tensor], Tensor]
CONFIDENCE = 1.0 - 1e-6
_EVENTS = 200  # thresholds tried on the first half of the draws
_FEWEST = 100


@dataclass(frozen=True, slots=True)
class Finding:
    """What one attack shows: epsilon is at least `epsilon`, with `confidence`, whatever is claimed."""

    attack: str
    epsilon: float
    confidence: float
    draws: int

    def refutes(self, claimed: float) -> bool:
        """Whether a claimed epsilon is thereby wrong."""
        return self.epsilon > claimed


def antipodal(
    release: Release,
    *,
    dimension: int,
    delta: float,
    draws: int,
    norm: float = 1.0,
    gaussian: bool = False,
    confidence: float = CONFIDENCE,
) -> Finding:
    """Tell releases of x and -x apart, along the diagonal, where the L1 distance is largest too.

    draws: releases of each of the two. norm: length of x; a release of raw features must bound them by itself, so try
    10. gaussian: where Gaussian noise is claimed, test its parameter too, which says more for the same draws.
    """
    x = torch.full((1, dimension), norm / math.sqrt(dimension), dtype=torch.float64)
    one, other = (_outputs(release, (sign * x).repeat(draws, 1)) for sign in (1.0, -1.0))
    direction = x.numpy()[0] / norm

    def scores(outputs: Array) -> Array:
        # The best statistics against spherical noise (and PrivUnit), and against Laplace noise.
        apart = np.abs(outputs + direction) - np.abs(outputs - direction)
        return np.stack([outputs @ direction, apart.sum(axis=1)])

    each = 1.0 - (1.0 - confidence) / (2 if gaussian else 1)
    first, second = scores(one), scores(other)
    shown = [Finding("antipodal pair", _told_apart(first, second, delta, each), confidence, draws)]
    if gaussian:
        found = _told_apart(first, second, delta, each, gaussian=True)
        shown.append(Finding("Gaussian parameter", found, confidence, draws))
    return max(shown, key=lambda finding: finding.epsilon)


def companion(
    release: Release, *, dimension: int, delta: float, draws: int, confidence: float = CONFIDENCE
) -> Finding:
    """Tell x and -x apart with the help of a second record, released beside it, that the attacker knows already.

    Independent noise makes the companion useless; noise used twice is known from it, and comes off. Records are
    released in turn (unknown, companion, unknown, ...), in one call.
    """
    x = torch.full((1, dimension), 1.0 / math.sqrt(dimension), dtype=torch.float64)
    direction = x.numpy()[0]

    def scores(outputs: Array) -> Array:
        unknown, known = outputs[0::2] @ direction, outputs[1::2] @ direction
        return np.stack([unknown - known, unknown * known])

    one, other = (_outputs(release, torch.cat([sign * x, x]).repeat(draws, 1)) for sign in (1.0, -1.0))
    return Finding("companion record", _told_apart(scores(one), scores(other), delta, confidence), confidence, draws)


def identification(
    release: Release,
    candidates: Tensor,
    *,
    delta: float,
    trials: int,
    generator: np.random.Generator,
    confidence: float = CONFIDENCE,
) -> Finding:
    """Name the one of candidates (N, D), uniformly drawn for each of `trials`, that a vector was released of.

    The attacker knows all candidates, and names the one closest in direction.
    """
    chosen = generator.integers(len(candidates), size=trials)
    outputs = _outputs(release, candidates[torch.from_numpy(chosen)])
    named = np.argmax(outputs @ candidates.double().numpy().T, axis=1)
    correct = int(np.sum(named == chosen))
    shown = identification_bound(correct, trials, candidates=len(candidates), delta=delta, confidence=confidence)
    return Finding(f"identification among {len(candidates)}", shown, confidence, trials)


def _told_apart(one: Array, other: Array, delta: float, confidence: float, *, gaussian: bool = False) -> float:
    """The epsilon that scores (S, N) of releases of two inputs show, by the best event of "a score is at least t"."""
    tail = (1.0 - checked_confidence(confidence)) / 2.0  # for hits and for false alarms
    if not 0.0 <= delta < 1.0:
        raise ConfigError(f"delta must be at least 0 and below 1, but got {delta}")
    half = one.shape[1] // 2

    def shown(hits: NDArray[np.int64], alarms: NDArray[np.int64], trials: int) -> Array:
        least, most = rates_at_least(hits, trials, tail=tail), rates_at_most(alarms, trials, tail=tail)
        return gaussian_parameter(least, most) if gaussian else epsilon_from_rates(least, most, delta=delta)

    best, event = -1.0, (0, 1.0, 0.0)
    for score in range(len(one)):
        for sign in (1.0, -1.0):  # an event likely for the first input, or for the second
            likely, unlikely = (one, other) if sign > 0 else (-other, -one)
            first, second = np.sort(likely[score, :half]), np.sort(unlikely[score, :half])
            at = np.unique(np.quantile(np.concatenate([first, second]), np.linspace(0.0, 1.0, _EVENTS)))
            hits, alarms = half - np.searchsorted(first, at), half - np.searchsorted(second, at)
            found = shown(hits, alarms, half)
            if found.max() > best:
                best, event = float(found.max()), (score, sign, float(at[np.argmax(found)]))
    score, sign, threshold = event
    likely, unlikely = (one, other) if sign > 0 else (-other, -one)
    hits, alarms = (np.array([np.sum(part[score, half:] >= threshold)]) for part in (likely, unlikely))
    value = float(shown(hits, alarms, one.shape[1] - half)[0])
    return _gaussian_epsilon(value, delta) if gaussian else value


def _gaussian_epsilon(mu: float, delta: float) -> float:
    from dp_accounting import get_epsilon_gaussian

    if delta <= 0.0:
        raise ConfigError("Gaussian noise has no epsilon at delta 0: give the delta that is claimed")
    return float(get_epsilon_gaussian(1.0 / mu, delta)) if mu > 0.0 else 0.0


def _outputs(release: Release, inputs: Tensor) -> Array:
    if len(inputs) < _FEWEST:
        raise ConfigError(f"an audit needs at least {_FEWEST} draws to say anything, but got {len(inputs)}")
    outputs = release(inputs).double().numpy()
    if outputs.shape != tuple(inputs.shape) or not np.isfinite(outputs).all():
        raise DataError(f"a release of {tuple(inputs.shape)} must be finite, of that shape; got {outputs.shape}")
    return outputs


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


Counts = NDArray[np.int64]


def rates_at_least(successes: Counts, trials: int, *, tail: float) -> Array:
    """Clopper-Pearson: rates that are exceeded but for a chance of `tail` each."""
    return np.where(successes > 0, beta.ppf(tail, np.maximum(successes, 1), trials - successes + 1), 0.0)


def rates_at_most(successes: Counts, trials: int, *, tail: float) -> Array:
    """Clopper-Pearson: rates that are not exceeded but for a chance of `tail` each."""
    return 1.0 - rates_at_least(trials - successes, trials, tail=tail)


def epsilon_from_rates(hits: Array, alarms: Array, *, delta: float) -> Array:
    """ln((hits - delta) / alarms): what hits (at least) and false alarms (at most) show; 0 where they show nothing.

    The definition itself, for the event that a test says x when it was x, and when it was x'.
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        shown = np.log(np.maximum(hits - delta, 0.0)) - np.log(alarms)
    return np.asarray(np.maximum(np.nan_to_num(shown, nan=0.0, neginf=0.0), 0.0))


def gaussian_parameter(hits: Array, alarms: Array) -> Array:
    """The least distance, in sigmas, of two Gaussians that any test tells apart that well (Dong et al. 2022).

    mu >= Phi^-1(hits) - Phi^-1(alarms), with hits at least and false alarms at most these; 0 where that is less.
    """
    with np.errstate(invalid="ignore"):
        return np.maximum(np.nan_to_num(ndtri(hits) - ndtri(alarms), nan=0.0, neginf=0.0), 0.0)


def identification_bound(correct: int, trials: int, *, candidates: int, delta: float, confidence: float) -> float:
    """What naming the one of N candidates, uniformly drawn, that a vector was released of shows of epsilon.

    epsilon >= ln((A - delta) (N - 1) / (1 - A)), with A the accuracy's lower confidence bound (Clopper-Pearson).
    """
    if candidates < 2:
        raise ConfigError(f"identification needs at least 2 candidates, but got {candidates}")
    if not 0 <= correct <= trials or trials < 1:
        raise DataError(f"expected 0 <= correct <= trials and at least 1 trial, but got {correct} of {trials}")
    accuracy = float(rates_at_least(np.array([correct]), trials, tail=1.0 - checked_confidence(confidence))[0])
    if accuracy <= delta:
        return 0.0
    return max(math.log((accuracy - delta) * (candidates - 1) / (1.0 - accuracy)), 0.0)


def checked_confidence(confidence: float) -> float:
    """A confidence, once known to lie strictly between 0 and 1."""
    if not 0.0 < confidence < 1.0:
        raise ConfigError(
            f"confidence must lie strictly between 0 and 1, but got {confidence}; 1 - 1e-6 is usual here"
        )
    return confidence
