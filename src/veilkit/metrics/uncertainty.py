"""How sure a number is: identity-clustered bootstrap and Clopper-Pearson intervals.

Images of one person are alike, so the person, not the image, is what is drawn again: a bootstrap draw takes as many
identities as there are, with replacement, each with all of its queries.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.stats import beta

from veilkit.errors import ConfigError, DataError
from veilkit.metrics.inputs import Values, finite_values, whole_numbers

_FEWEST_DRAWS = 1000
_DRAWS_AT_ONCE = 256


@dataclass(frozen=True, slots=True)
class Interval:
    """A value and the interval that covers the truth with probability `confidence`."""

    value: float
    low: float
    high: float
    confidence: float


def bootstrap_means(
    values: NDArray[np.float64], identities: Values, *, generator: np.random.Generator, draws: int = 1000
) -> NDArray[np.float64]:
    """Means of K kinds of values (K, Q) over Q queries, in the same bootstrap draws of identities: (K, draws).

    Each mean is over the queries drawn, so a person with many queries weighs more, as in the value itself. At least
    1,000 draws. Queries without a match have no value: leave them out with `RetrievalResult.valid`.
    """
    _check_draws(draws)
    if values.ndim != 2 or 0 in values.shape:
        raise DataError(f"values must have shape (kinds, queries), none of them 0, but got {values.shape}")
    rows = np.stack([finite_values(row, "values") for row in values])
    _, person = np.unique(whole_numbers(identities, "identities", rows.shape[1]), return_inverse=True)
    people = int(person.max()) + 1
    if people < 2:
        raise DataError("the bootstrap draws identities and needs at least 2 of them, but all queries have one")
    sums = np.stack([np.bincount(person, weights=row) for row in rows])
    counts = np.bincount(person).astype(np.float64)
    means = np.empty((len(rows), draws))
    for start in range(0, draws, _DRAWS_AT_ONCE):  # bounds the memory of the draws
        stop = min(start + _DRAWS_AT_ONCE, draws)
        times = generator.multinomial(people, np.full(people, 1.0 / people), size=stop - start).astype(np.float64)
        means[:, start:stop] = (sums @ times.T) / (times @ counts)
    return means


def bootstrap_interval(
    values: Values,
    identities: Values,
    *,
    generator: np.random.Generator,
    draws: int = 1000,
    confidence: float = 0.95,
) -> Interval:
    """The mean of values (Q,) with its percentile interval from an identity-clustered bootstrap."""
    numbers = finite_values(values, "values")
    means = bootstrap_means(numbers[None], identities, generator=generator, draws=draws)[0]
    return percentile_interval(float(numbers.mean()), means, confidence)


def paired_difference(
    first: Values,
    second: Values,
    identities: Values,
    *,
    generator: np.random.Generator,
    draws: int = 1000,
    confidence: float = 0.95,
) -> Interval:
    """mean(first) - mean(second) of two methods on the same queries (Q,), with its interval on the same draws."""
    one, other = finite_values(first, "first"), finite_values(second, "second")
    if one.shape != other.shape:
        raise DataError(f"a paired difference needs the same queries, but got {len(one)} and {len(other)} values")
    means = bootstrap_means(np.stack([one, other]), identities, generator=generator, draws=draws)
    return percentile_interval(float(one.mean() - other.mean()), means[0] - means[1], confidence)


def crossed_weights(
    first: Values, second: Values, *, generator: np.random.Generator, draws: int = 1000
) -> NDArray[np.float64]:
    """How often each of N answers counts in each draw, (draws, N). first, second: its two clusters, (N,).

    Where every participant answers for every person, both are a sample. The pigeonhole bootstrap (Owen 2007) draws
    both, each by itself: an answer counts as often as its participant was drawn times how often its person was. It
    errs on the wide side. Where all answers share one cluster of a kind, that kind is not drawn.

    A statistic of an answer's values v in a draw w is that of the weighted answers, such as (w * v).sum() / w.sum()
    for a mean.

    >>> weights = crossed_weights([0, 0, 1, 1], [0, 1, 0, 1], generator=np.random.default_rng(0))
    >>> weights.shape, bool((weights.sum(axis=1) == 4).all())
    ((1000, 4), True)
    """
    _check_draws(draws)
    if not len(first):
        raise DataError("the bootstrap needs at least one answer, but got none")
    weights = np.ones((draws, len(first)))
    for clusters, name in ((first, "first"), (second, "second")):
        _, place = np.unique(whole_numbers(clusters, name, len(first)), return_inverse=True)
        count = int(place.max()) + 1
        if count > 1:
            weights *= generator.multinomial(count, np.full(count, 1.0 / count), size=draws)[:, place]
    return weights


def clopper_pearson(successes: int, trials: int, *, confidence: float = 0.95) -> Interval:
    """A rate of independent trials with its exact interval: it covers the truth at least as often as promised.

    >>> f"{clopper_pearson(0, 3000).high:.2%}"
    '0.12%'
    """
    tail = _tail(confidence)
    if not 0 <= successes <= trials or trials < 1:
        raise DataError(f"expected 0 <= successes <= trials and at least 1 trial, but got {successes} of {trials}")
    low = float(beta.ppf(tail, successes, trials - successes + 1)) if successes > 0 else 0.0
    high = float(beta.ppf(1.0 - tail, successes + 1, trials - successes)) if successes < trials else 1.0
    return Interval(successes / trials, low, high, confidence)


def percentile_interval(value: float, draws: NDArray[np.float64], confidence: float = 0.95) -> Interval:
    """A value with the interval between the percentiles of its bootstrap draws (D,)."""
    tail = _tail(confidence)
    low, high = np.quantile(draws, [tail, 1.0 - tail])
    return Interval(value, float(low), float(high), confidence)


def _check_draws(draws: int) -> None:
    if draws < _FEWEST_DRAWS:
        raise ConfigError(
            f"draws must be at least {_FEWEST_DRAWS}, for the interval's ends to settle, but got {draws}"
        )


def _tail(confidence: float) -> float:
    if not 0.0 < confidence < 1.0:
        raise ConfigError(f"confidence must lie strictly between 0 and 1, but got {confidence}; 0.95 is usual")
    return (1.0 - confidence) / 2.0
