"""Paired choices: does the right answer come before a wrong one? Many of them tell more than a few first places."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from veilkit.attacks.intervals import mean_score, retrieval_scores
from veilkit.attacks.pictures import Features
from veilkit.attacks.search import Search
from veilkit.attacks.target import AttackTarget, given
from veilkit.metrics import retrieval
from veilkit.types import Score

PAIRED = "paired choice"
BLIND = 0.5


def unit(vectors: Features) -> Features:
    """Features (N, D) of length 1."""
    return np.asarray(vectors / np.maximum(np.linalg.norm(vectors, axis=1, keepdims=True), 1e-12), dtype=np.float32)


def own_original_scores(
    target: AttackTarget, found: Features, truth: Features
) -> tuple[tuple[Score, ...], dict[str, float]]:
    """Scores of vectors (N, D) that stand for N originals, whose true vectors are `truth`; and chance.

    "paired choice": the own original is nearer than a stranger's. "rank-1": it is the nearest of all.
    """
    each, people = np.arange(len(truth)), target.clusters
    choices = own_choices(found, truth, people)
    chance = {PAIRED: BLIND, "rank-1": 1 / len(truth)}
    first = retrieval_scores(retrieval(found, truth, each, each), people, rng=target.rng, chance=chance)[0]
    return (_paired(target, choices, people), first), chance


def own_choices(found: Features, truth: Features, people: NDArray[np.int64]) -> NDArray[np.float64]:
    """(N,) how often the own true vector is nearer to what was found (N, D) than that of somebody else's picture."""
    likeness = unit(found) @ unit(truth).T
    own = np.diagonal(likeness)[:, None]
    strangers = people[:, None] != people[None, :]
    better = ((own > likeness) + BLIND * (own == likeness)) * strangers
    return np.asarray(better.sum(axis=1) / np.maximum(strangers.sum(axis=1), 1), dtype=np.float64)


def same_person_score(target: AttackTarget, query: Features, gallery: Features) -> Score:
    """ "paired choice": another picture of the person is nearer to the query than a picture of somebody else."""
    choices, asked = _same_person(given(target.search), unit(query), unit(gallery))
    return _paired(target, choices, asked)


def _same_person(search: Search, query: Features, gallery: Features) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """For each query that has a match, its share of right choices, and its person."""
    choices, asked = [], []
    identities = search.identities[search.gallery]
    for number, place in enumerate(search.query):
        right = identities == search.identities[place]
        counted = np.ones(len(identities), dtype=np.bool_)
        if search.own[number] >= 0:
            counted[search.own[number]] = False
        if search.cameras is not None:
            counted &= ~(right & (search.cameras[search.gallery] == search.cameras[place]))
        if not (right & counted).any() or right.all():
            continue
        likeness = gallery[search.gallery] @ query[place]
        wrong = np.sort(likeness[~right & counted])
        low, high = (np.searchsorted(wrong, likeness[right & counted], side=side) for side in ("left", "right"))
        choices.append(float((low + high).mean() / (2 * len(wrong))))
        asked.append(search.identities[place])
    return np.array(choices), np.array(asked, dtype=np.int64)


def _paired(target: AttackTarget, choices: NDArray[np.float64], people: NDArray[np.int64]) -> Score:
    return mean_score(PAIRED, choices, people, rng=target.rng, note=f"chance {BLIND:.0%}", rate=True)
