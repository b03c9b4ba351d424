"""How well a recogniser verifies protected faces against raw ones: TPR at FPR over all cross-person pairs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from studies.disguise.plan import RATES
from veilkit.attacks.intervals import mean_score
from veilkit.metrics import CrossPairs, PairRates, accuracy_by_fold, bootstrap_interval, equal_error_rate
from veilkit.rng import Randomness
from veilkit.types import Role

Array = NDArray[np.float64]
OfficialPair = tuple[int, int, bool, int]
CURVE = tuple(float(f"{rate:.1e}") for rate in np.logspace(-4, 0, 17)[:-1])
EDGES = np.linspace(0.0, 2.0, 41)
_TINY = 1e-12


def verified(
    protected: NDArray[np.float32],
    raw: NDArray[np.float32],
    people: NDArray[np.int64],
    official: Sequence[OfficialPair],
    rng: Randomness,
    *,
    strangers: bool = False,
) -> dict[str, Any]:
    """Features (N, D) of protected pictures against those of their originals, of people (N,).

    "TPR": pairs of a protected and another raw picture of one person that are accepted, with the threshold set on
    protected and raw pictures of different people, as an attacker would. "TPR, own threshold": with the one that the
    recogniser has on raw pictures. "farthest": pairs that are *less* alike than all but so few of strangers. "own":
    protected pictures that are accepted as their own original. "accuracy": of official pairs, the first protected.
    strangers: `protected` are raw pictures of other people among these. Some of their pairs with raw pictures then
    show one person, though labelled as two, so that thresholds are those of raw pictures throughout.
    """
    one, other = unit(protected), unit(raw)
    similar, clean = one @ other.T, other @ other.T
    pairs, usual = CrossPairs.of(similar, people), CrossPairs.of(clean, people)
    farthest = CrossPairs.of(-clean, people) if strangers else None
    if strangers:
        pairs = replace(pairs, impostor=usual.impostor)
    found, kept, far = (
        pairs.tpr(RATES, generator=_generator(rng)),
        pairs.tpr(RATES, generator=_generator(rng), calibration=usual),
        CrossPairs.of(-similar, people).tpr(RATES, generator=_generator(rng), calibration=farthest),
    )
    own = np.diagonal(similar)
    return {
        "TPR": _told(found),
        "TPR, own threshold": _told(kept),
        "farthest": _told(far),
        "own": {
            f"{rate:g}": _mean((own > limit).astype(np.float64), people, rng)
            for rate, limit in zip(RATES, kept.thresholds, strict=True)
        },
        "EER": equal_error_rate(pairs.genuine, pairs.impostor),
        "accuracy": _accuracy(similar, official, people, rng),
        "genuine": found.genuine,
        "impostors": found.impostors,
        "people": found.people,
        "pictures": len(people),
        "ROC": [[rate, value] for rate, value in zip(CURVE, _curve(pairs), strict=True)],
        "distances": {
            "one person, raw": _shares(usual.genuine),
            "two people, raw": _shares(usual.impostor),
            "original and protected": _shares(own),
            "one person, protected": _shares(pairs.genuine),
        },
    }


def unit(features: NDArray[np.float32]) -> NDArray[np.float32]:
    """Rows of length 1."""
    return np.asarray(features / np.maximum(np.linalg.norm(features, axis=1, keepdims=True), _TINY))


def rates_of(
    guesses: NDArray[np.float32], raw: NDArray[np.float32], people: NDArray[np.int64], rng: Randomness
) -> PairRates:
    """TPR at each of `RATES` of guessed embeddings (N, D) against raw ones, with the draws."""
    return CrossPairs.of(unit(guesses) @ unit(raw).T, people).tpr(RATES, generator=_generator(rng))


def difference(first: PairRates, second: PairRates) -> dict[str, list[float]]:
    """TPR of one minus TPR of another at each rate, [value, low, high]; both drawn with the same generator's seed."""
    count = min(first.draws.shape[1], second.draws.shape[1])
    apart = first.draws[:, :count] - second.draws[:, :count]
    ends = np.quantile(apart, [0.025, 0.975], axis=1)
    values = first.values - second.values
    return {
        f"{rate:g}": [float(values[place]), float(ends[0, place]), float(ends[1, place])]
        for place, rate in enumerate(first.rates)
    }


def _told(found: PairRates) -> dict[str, list[float]]:
    rates: dict[str, list[float]] = {}
    for place, rate in enumerate(found.rates):
        interval = found.interval(place)
        rates[f"{rate:g}"] = [interval.value, interval.low, interval.high]
    return rates


def _accuracy(
    similar: NDArray[np.float32], official: Sequence[OfficialPair], people: NDArray[np.int64], rng: Randomness
) -> list[float] | None:
    """[value, low, high] by LFW's protocol; None where fewer than two folds have pairs."""
    if len({fold for *_, fold in official}) < 2:
        return None
    first, second, same, fold = (np.array(part) for part in zip(*official, strict=True))
    scores = similar[first, second].astype(np.float64)
    found = accuracy_by_fold(scores, same.astype(np.int64), fold)
    thresholds = found.thresholds[np.searchsorted(np.unique(fold), fold)]
    right = ((scores >= thresholds) == same).astype(np.float64)
    interval = bootstrap_interval(right, people[first], generator=_generator(rng))
    return [interval.value, interval.low, interval.high]


def _curve(pairs: CrossPairs) -> list[float]:
    falling = np.sort(pairs.impostor)[::-1]
    places = (np.array(CURVE) * len(falling) + 1e-9).astype(np.int64)
    return [float((pairs.genuine > falling[min(place, len(falling) - 1)]).mean()) for place in places]


def _shares(similar: NDArray[Any]) -> list[float]:
    """Shares of Euclidean distances between unit vectors in the bins of `EDGES`."""
    apart = np.sqrt(np.clip(2 - 2 * similar.astype(np.float64), 0.0, 4.0))
    counts, _ = np.histogram(np.clip(apart, EDGES[0], EDGES[-1]), EDGES)
    return [round(float(count), 6) for count in counts / len(similar)]


def _mean(values: Array, people: NDArray[np.int64], rng: Randomness) -> list[float | None]:
    score = mean_score("own", values, people, role=Role.PRIVACY, higher_is_better=False, rng=rng)
    return [score.value, score.low, score.high]


def _generator(rng: Randomness) -> np.random.Generator:
    return rng.child("bootstrap").numpy()
