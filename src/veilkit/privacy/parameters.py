"""Privacy parameters, checked: a wrong epsilon is an error here and never a weaker guarantee later."""

from __future__ import annotations

import math

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
