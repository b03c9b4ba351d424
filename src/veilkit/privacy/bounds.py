"""Lower bounds on epsilon from counts: what an attack's success proves against a claim."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtri
from scipy.stats import beta

from veilkit.errors import ConfigError, DataError

Counts = NDArray[np.int64]
Array = NDArray[np.float64]


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
