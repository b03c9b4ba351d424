"""Three ways to name a person by a feature vector: a softmax classifier, nearest neighbour, nearest centroid."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from veilkit.errors import DataError
from veilkit.metrics.inputs import l2_normalised

Vectors = NDArray[np.float32]
Codes = NDArray[np.int64]
STRENGTHS = (0.01, 0.1, 1.0, 10.0, 100.0)
_CHUNK = 1024
_AT_FIRST, _AT_MOST = 200, 20_000  # iterations before the limit is raised, and in all
_TOLERANCE = 1e-4
_TINY = 1e-12


def nearest_neighbour(known: Vectors, people: Codes, asked: Vectors) -> Codes:
    """For each vector asked (Q, D) the person (of `people`, (N,)) of the known one (N, D) closest by cosine."""
    held = l2_normalised(known)
    parts = [l2_normalised(asked[at : at + _CHUNK]) @ held.T for at in range(0, len(asked), _CHUNK)]
    return np.concatenate([people[part.argmax(axis=1)] for part in parts])


def nearest_centroid(known: Vectors, people: Codes, asked: Vectors) -> Codes:
    """The person whose mean direction is closest by cosine."""
    codes, place = np.unique(people, return_inverse=True)
    centroids = np.zeros((len(codes), known.shape[1]))
    np.add.at(centroids, place, l2_normalised(known))
    return nearest_neighbour(centroids.astype(np.float32), codes, asked)


@dataclass(frozen=True, slots=True, eq=False)
class Softmax:
    """What a softmax classifier named (Q,), and whether its training had converged."""

    named: Codes
    iterations: int
    converged: bool


def softmax(
    known: Vectors,
    people: Codes,
    asked: Vectors,
    *,
    strengths: Sequence[float] = STRENGTHS,
    at_most: int = _AT_MOST,
) -> dict[float, Softmax]:
    """Multinomial logistic regression with an L2 penalty, for each strength C, by L-BFGS until it has converged.

    Every person counts the same, however many pictures teach it. The limit on iterations is raised until none is
    needed; what has not converged after `at_most` says so. Stronger ones go on from weaker ones, which saves time and
    changes nothing: the problem is convex. Vectors are centred, and divided by one spread for all dimensions.
    """
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.linear_model import LogisticRegression

    if (count := len(np.unique(people))) < 2:
        raise DataError("a classifier tells people apart and needs at least 2 of them, but got one")
    mean, spread = known.mean(axis=0), float(known.std(axis=0).mean()) + _TINY
    learned, questions = (np.asarray((each - mean) / spread, dtype=np.float64) for each in (known, asked))
    found = {}
    # The gradient of one person's weights is about one in the number of people: sklearn's tolerance, made for few
    # classes, would call three iterations for 700 people converged.
    model = LogisticRegression(class_weight="balanced", warm_start=True, max_iter=_AT_FIRST, tol=_TOLERANCE / count)
    for strength in sorted(strengths):
        model.set_params(C=strength, max_iter=min(_AT_FIRST, at_most))
        done, converged = 0, False
        while not converged and done < at_most:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", ConvergenceWarning)  # it is dealt with here, by going on
                model.fit(learned, people)
            last = int(np.max(model.n_iter_))
            done, converged = done + last, last < model.max_iter
            model.set_params(max_iter=min(2 * model.max_iter, max(1, at_most - done)))
        found[strength] = Softmax(np.asarray(model.predict(questions), dtype=np.int64), done, converged)
    return found
