"""Attacks on released features: averaging of several releases, and membership of people in the training set.

A ledger prevents the first, since it gives a record the same vector again: without one, independent noise falls by
the root of the number of releases, and the privacy loss adds up. As for the second, metric learning pulls a training
person's pictures together: who holds the encoder and some pictures of a person can look how close together these are
(L3); of strangers they are less so.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from veilkit.attacks.membership_scores import Judged, membership_scores
from veilkit.attacks.synthetic_release.neighbours import matched_people
from veilkit.errors import ConfigError, DataError
from veilkit.metrics.inputs import l2_normalised
from veilkit.rng import Randomness
from veilkit.types import Score

Vectors = NDArray[np.float32]
COUNTS = (1, 4, 16, 64)


def averaged_releases(release: Callable[[], Vectors], counts: Sequence[int] = COUNTS) -> dict[int, Vectors]:
    """The mean (N, D) of the first so many releases, for each count; `release` is called as often as the largest."""
    if not counts or min(counts) < 1 or list(counts) != sorted(set(counts)):
        raise ConfigError(f"counts must be positive and rise, but got {tuple(counts)}")
    found: dict[int, Vectors] = {}
    total: NDArray[np.float64] | None = None
    for made in range(1, max(counts) + 1):
        vectors = release().astype(np.float64)
        total = vectors if total is None else total + vectors
        if made in counts:
            found[made] = (total / made).astype(np.float32)
    return found


Codes = NDArray[np.int64]


def togetherness(features: Vectors, people: Codes) -> NDArray[np.float64]:
    """(P,) of each person, in the order of their codes, the mean cosine of their different pictures.

    features (N, D), people (N,). Everybody needs two pictures.
    """
    unit = l2_normalised(features).astype(np.float64)
    codes, place = np.unique(people, return_inverse=True)
    counts = np.bincount(place)
    if counts.min() < 2:
        raise DataError("togetherness needs two pictures of each person, but somebody has one: leave them out")
    sums = np.zeros((len(codes), unit.shape[1]))
    np.add.at(sums, place, unit)
    # The square of a sum holds each picture with itself, which is 1, and each pair twice.
    return np.asarray((np.square(sums).sum(axis=1) - counts) / (counts * (counts - 1)))


def feature_membership(
    inside: Vectors, inside_people: Codes, outside: Vectors, outside_people: Codes, rng: Randomness
) -> tuple[tuple[Score, ...], dict[str, float]]:
    """AUC, TPR at 1 % FPR and balanced accuracy of telling training people (inside) from others; and chance.

    Both sides are cut to equally many people with equally many pictures each, so that neither is told by its size.
    """
    chosen = matched_people(inside_people, outside_people, rng.child("matched"))
    twice = np.isin(chosen.pair, np.flatnonzero(np.bincount(chosen.pair) >= 2))
    sides = (inside[chosen.first[twice]], outside[chosen.second[twice]])
    scores = [togetherness(side, chosen.pair[twice]) for side in sides]
    count = len(scores[0])
    judged = Judged(np.concatenate(scores), np.arange(2 * count) < count, np.arange(2 * count))
    return membership_scores(judged, rng), judged.chance
