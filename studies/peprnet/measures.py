"""What features of PEPR-Net's study keep and give away: search, identification, noise, repeated releases."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from studies.peprnet.data import TestPart, Vectors
from studies.peprnet.feature_attacks import COUNTS, averaged_releases
from studies.peprnet.plan import PeprStudyConfig
from studies.privacyreid.feature_distribution import distribution
from studies.shared.attacks import described, difference
from veilkit.attacks import AttackTarget, Budget, run_gated
from veilkit.attacks.identify import (
    CLASSIFIERS,
    Identification,
    divide_pictures,
    nearest_centroid,
    nearest_neighbour,
    person_shares,
)
from veilkit.attacks.intervals import retrieval_scores
from veilkit.audit.cells.differences import paired_differences
from veilkit.errors import ConfigError
from veilkit.methods.peprnet.feature_noise import NoiseKind, noise_mechanism
from veilkit.metrics import retrieval
from veilkit.privacy import Mechanism, PeprPaper, SeededNoise, composed_epsilon, unit
from veilkit.rng import Randomness
from veilkit.types import Role

_DIGITS = 5
_METRICS = ("rank-1", "mAP")


def searched(part: TestPart, query: Vectors, gallery: Vectors, rng: Randomness) -> dict[str, Any]:
    """Rank-1 and mAP as [value, low, high], of features (N, D) of all pictures as queries among those as gallery."""
    found = part.search.find(query, gallery)
    people, chance = part.people[part.search.query], part.search.chance()
    scores = retrieval_scores(found, people, role=Role.UTILITY, higher_is_better=True, rng=rng, chance=chance)
    return {each.metric: [each.value, each.low, each.high] for each in scores if each.metric in _METRICS}


def identified(part: TestPart, features: Vectors, clean: Vectors, rng: Randomness) -> dict[str, Any]:
    """Identification through its gates, with each person's share by each classifier.

    clean: features of an encoder without any protection, for the gates.
    """
    made: list[Identification] = []

    def make() -> Identification:
        made.append(Identification())
        return made[-1]

    target = AttackTarget(
        rng=rng, features=features, clean_features=clean, originals=part.pictures, people=part.people,
        search=part.search, budget=Budget(pictures=len(features)),
    )  # fmt: skip
    evidence = run_gated(make, target)
    cell = described(evidence)
    found = made[0].found
    if found is not None:
        cell |= {
            "headline": found.chosen,
            "strength": found.strength,
            "people": found.people.tolist(),
            "each": {name: _rounded(shares) for name, shares in found.shares.items()},
        }
    return cell


def changes(
    part: TestPart,
    first: tuple[Vectors, Mapping[str, Any]],
    second: tuple[Vectors, Mapping[str, Any]],
    rng: Randomness,
) -> dict[str, Any]:
    """Paired differences, first - second, as [value, low, high]: Rank-1, mAP, and accuracy by each classifier.

    Each is the features (N, D) of all pictures and their cell of identification; people are drawn again.
    """
    found = [part.search.find(features, features) for features, _ in (first, second)]
    people = part.people[part.search.query]
    measured = paired_differences("expert", found[0], found[1], people, role=Role.UTILITY, rng=rng)
    changed: dict[str, Any] = {
        each.score.metric: [each.score.value, each.score.low, each.score.high] for each in measured
    }
    one, other = first[1], second[1]
    for name in CLASSIFIERS:
        if "each" in one and "each" in other:
            changed[name] = difference(one["each"][name], other["each"][name], one["people"], rng)
    return changed


def noised(features: Vectors, mechanism: Mechanism, seed: int) -> Vectors:
    """Features (N, D), brought to length 1 but for the paper's noise, as one release shows them.

    The noise is of a seed, so that a study can be repeated; it has the distribution of the secure one.
    """
    vectors = torch.from_numpy(features)
    ready = vectors if isinstance(mechanism, PeprPaper) else unit(vectors)
    return mechanism.release(ready, noise=SeededNoise(seed, insecure=True)).numpy()


def mechanism_of(kind: NoiseKind, features: Vectors, epsilon: float, config: PeprStudyConfig) -> Mechanism:
    """The noise of one kind for these features."""
    return noise_mechanism(kind, torch.from_numpy(features), epsilon=epsilon, delta=config.deltas(kind))


def stage2(
    part: TestPart, features: Vectors, clean: Vectors, kind: NoiseKind, epsilon: float, config: PeprStudyConfig,
    rng: Randomness,
) -> dict[str, Any]:  # fmt: skip
    """A protected gallery (Tables 2 to 4): clean queries search it, and people are identified in noisy features."""
    mechanism = mechanism_of(kind, features, epsilon, config)
    noisy = noised(features, mechanism, config.seed)
    return {
        "utility": searched(part, features, noisy, rng),
        "identification": identified(part, noisy, clean, rng),
        "claimed": mechanism.epsilon,
        "proved": mechanism.cost.epsilon if mechanism.cost.proved else None,
        "sigma": getattr(mechanism, "sigma", None),
    }


def curve(
    part: TestPart, features: Vectors, kind: NoiseKind, epsilons: Sequence[float], config: PeprStudyConfig
) -> dict[str, Any]:
    """Rank-1 against epsilon among as many noisy gallery pictures as people, one of each.

    person: by a clean picture of the person from another camera. record: by the very picture before noise, which is
    what an attacker who knows all candidates does. Means over `draws` releases; None where there is no such noise.
    """
    query, entry = part.first_of_each()
    asked, held = features[query], features[entry]
    each = np.arange(len(entry))
    points: dict[str, Any] = {
        "clean": {"person": retrieval(asked, held, each, each).rank(1), "record": 1.0}, "people": len(entry),
    }  # fmt: skip
    for epsilon in epsilons:
        try:
            mechanism = mechanism_of(kind, features, epsilon, config)
        except ConfigError:
            points[f"{epsilon:g}"] = None
            continue
        hits: dict[str, list[NDArray[np.float64]]] = {"person": [], "record": []}
        for draw in range(config.draws):
            noisy = noised(held, mechanism, config.seed + draw)
            for name, asking in (("person", asked), ("record", held)):
                hits[name].append(retrieval(asking, noisy, each, each).hits(1))
        points[f"{epsilon:g}"] = {name: float(np.mean(found)) for name, found in hits.items()}
    return points


def plane(part: TestPart, features: Vectors, config: PeprStudyConfig) -> dict[str, Any]:
    """Features of some people in the plane by t-SNE, without and with PrivUnit's noise."""
    few = np.flatnonzero(np.isin(part.people, np.unique(part.people)[: config.drawn]))
    mechanism = mechanism_of("privunit", features, max(config.epsilons), config)
    noisy = noised(features[few], mechanism, config.seed)
    return distribution(features[few], noisy, part.people[few], shown=config.drawn, seed=config.seed)


def averaging(part: TestPart, features: Vectors, kind: NoiseKind, config: PeprStudyConfig) -> dict[str, Any]:
    """Rank-1 and identification in averages of 1 to 64 releases with fresh noise; what these cost together."""
    mechanism = mechanism_of(kind, features, config.averaging_epsilon, config)
    draws = iter(range(max(COUNTS)))
    averaged = averaged_releases(lambda: noised(features, mechanism, config.seed + next(draws)))
    parts = divide_pictures(part.people, Randomness.from_seed(config.seed).child("averaging"))
    known, asked = parts.known, parts.test
    found: dict[str, Any] = {}
    for count, vectors in averaged.items():
        learn, truth = (vectors[known], part.people[known]), part.people[asked]
        found[str(count)] = {
            "rank-1": part.search.find(features, vectors).rank(1),
            "1-NN": float(person_shares(nearest_neighbour(*learn, vectors[asked]) == truth, truth).mean()),
            "centroid": float(person_shares(nearest_centroid(*learn, vectors[asked]) == truth, truth).mean()),
            "epsilon": composed_epsilon({mechanism.cost: count}, delta=config.delta),
        }
    return found


def _rounded(values: NDArray[np.float64]) -> list[float]:
    return [round(float(value), _DIGITS) for value in values]
