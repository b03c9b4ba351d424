"""Closed-set identification: learns people from some of their pictures, and names them in others (PEPR-Net's metric).

The one attack here whose people are the same in training and test: what differs is the pictures. It says how much of
who somebody is lies in a feature, to whoever can put names to a part of a gallery.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from veilkit.attacks.base import Attack, AttackTarget, Need, Oracle
from veilkit.attacks.classifiers import STRENGTHS, nearest_centroid, nearest_neighbour, softmax
from veilkit.attacks.headline import Headline
from veilkit.attacks.intervals import mean_score
from veilkit.attacks.people_split import some_people
from veilkit.attacks.pictures import Pictures
from veilkit.metrics import clopper_pearson, retrieval
from veilkit.rng import Randomness
from veilkit.types import Evidence, Level, Reason, ReasonCode, Role

Vectors = NDArray[np.float32]
Codes = NDArray[np.int64]
Shares = NDArray[np.float64]
SOFTMAX, NEIGHBOUR, CENTROID = "softmax", "1-NN", "centroid"
CLASSIFIERS = (SOFTMAX, NEIGHBOUR, CENTROID)
ACCURACY = "accuracy"
FEWEST = 3  # pictures of a person: one to learn from, one to choose by, one to be asked about
_VALIDATION, _TEST = 0.2, 0.3
_CLOSED = "the same people, by other pictures of theirs, taught it"


@dataclass(frozen=True, slots=True, eq=False)
class Parts:
    """Positions of pictures, disjoint, of the same people in each: to learn from, to choose by, to be asked about."""

    train: Codes
    validation: Codes
    test: Codes

    @property
    def known(self) -> Codes:
        """What may be learned from once everything is chosen."""
        return np.sort(np.concatenate([self.train, self.validation]))


def divide_pictures(people: Codes, rng: Randomness) -> Parts:
    """Each person's pictures at random, about 50, 20 and 30 % of them, at least one each.

    people: (N,) codes. Who has fewer than three pictures is left out.
    """
    parts: tuple[list[Codes], ...] = ([], [], [])
    for code in np.unique(people):
        own = np.flatnonzero(people == code)
        if len(own) < FEWEST:
            continue
        own = own[rng.child("pictures", int(code)).permutation(len(own))]
        test, validation = (max(1, round(share * len(own))) for share in (_TEST, _VALIDATION))
        for part, chosen in zip(parts, np.split(own, [len(own) - test - validation, len(own) - test]), strict=True):
            part.append(chosen)
    empty = np.empty(0, dtype=np.int64)
    return Parts(*(np.sort(np.concatenate([empty, *part])) for part in parts))


@dataclass(frozen=True, slots=True, eq=False)
class Identified:
    """people: (P,) codes. shares: for each classifier, of each person's test pictures those rightly named, (P,).

    chosen: the classifier that was best on the validation pictures. strength: of the softmax, chosen there, too.
    """

    people: Codes
    shares: dict[str, Shares]
    chosen: str
    strength: float
    iterations: int
    converged: bool

    @property
    def chance(self) -> float:
        """Of naming somebody rightly without looking, where every person counts the same."""
        return 1.0 / len(self.people)


def identify(features: Vectors, people: Codes, parts: Parts) -> Identified:
    """Name the people (N,) in features (N, D) of the test part, by all three classifiers.

    The softmax's strength, and the classifier to report first, are chosen on validation pictures; then all learn from
    both other parts. Accuracies are means over people, so that nobody counts for having many pictures, and blind
    guessing scores one in the number of people whatever it guesses.
    """
    learn, choose = (features[parts.train], people[parts.train]), parts.validation
    tried = softmax(*learn, features[choose], strengths=STRENGTHS)
    right = {strength: _accuracy(each.named, people[choose]) for strength, each in tried.items()}
    strength = max(right, key=lambda each: (right[each], -each))
    first = {
        SOFTMAX: right[strength],
        NEIGHBOUR: _accuracy(nearest_neighbour(*learn, features[choose]), people[choose]),
        CENTROID: _accuracy(nearest_centroid(*learn, features[choose]), people[choose]),
    }
    known, asked, truth = (features[parts.known], people[parts.known]), features[parts.test], people[parts.test]
    fitted = softmax(*known, asked, strengths=(strength,))[strength]
    named = {
        SOFTMAX: fitted.named,
        NEIGHBOUR: nearest_neighbour(*known, asked),
        CENTROID: nearest_centroid(*known, asked),
    }
    return Identified(
        np.unique(truth),
        {name: person_shares(each == truth, truth) for name, each in named.items()},
        max(first, key=lambda name: first[name]),
        strength,
        fitted.iterations,
        fitted.converged and all(each.converged for each in tried.values()),
    )


def person_shares(right: NDArray[np.bool_], people: Codes) -> Shares:
    """(P,) of each person the share of their pictures, (N,), that is right; people in the order of their codes."""
    _, place = np.unique(people, return_inverse=True)
    return np.asarray(np.bincount(place, weights=right) / np.bincount(place))


def _accuracy(named: Codes, people: Codes) -> float:
    return float(person_shares(named == people, people).mean())


class Identification(Attack):
    """Names people in features of a release, or in a recogniser's features of released pictures.

    Gates: where nothing is protected it must find what nearest neighbours, searched by other means, find there but
    for chance; on independent noise, nobody. The softmax must have converged.
    """

    name = "identification"
    summary = "learns people from some pictures of the release and names them in other pictures of theirs"
    level = Level.L2
    headline = Headline(
        "People named by examples",
        "An attacker who knows who is in some released pictures names the same people in others {value} of the "
        "time{interval}",
        "names",
        metric="",
    )
    needs = frozenset({Need.IDENTITIES, Need.BUDGET})

    def __init__(self) -> None:
        self.found: Identified | None = None  # of the last run, person by person

    def lacking(self, target: AttackTarget, oracle: Oracle | None, public: Pictures | None) -> tuple[Reason, ...]:
        """Besides what is always needed: features, or else pictures and a recogniser."""
        missing = super().lacking(target, oracle, public)
        if missing or target.features is not None or not (target.lacks(Need.IMAGES) or target.lacks(Need.EXPERT)):
            return missing
        text = "the release holds no features, nor pictures with a recogniser to make some"
        return (Reason(ReasonCode.NO_FEATURES, text),)

    def run(self, target: AttackTarget) -> Evidence:
        """Accuracy of the classifier that validation pictures chose (headline), and of all three."""
        features, people, parts = self._taken(target)
        if len(np.unique(people[parts.test])) < 2:
            text = f"fewer than two people have the {FEWEST} pictures that it takes to learn, choose and ask"
            return self.not_applicable(Reason(ReasonCode.TOO_FEW_PEOPLE, text))
        self.found = found = identify(features, people, parts)
        rows = {ACCURACY: found.shares[found.chosen]}
        rows |= {f"{ACCURACY} ({name})": shares for name, shares in found.shares.items()}
        note = f"chance {found.chance:.2%}; {_CLOSED}"
        scores = tuple(
            mean_score(metric, shares, found.people, role=Role.PRIVACY, higher_is_better=False, rng=target.rng,
                       note=f"{found.chosen}; {note}" if metric == ACCURACY else note)
            for metric, shares in rows.items()
        )  # fmt: skip
        details = {
            "chance": dict.fromkeys(rows, found.chance),
            "closed set": _CLOSED,
            "people": len(found.people),
            "pictures": {name: len(getattr(parts, name)) for name in Parts.__slots__},
            "headline": found.chosen,
            "strength": found.strength,
            "iterations": found.iterations,
        }
        text = f"its softmax has not converged after {found.iterations} iterations"
        invalid = () if found.converged else (Reason(ReasonCode.NOT_TRAINED, text),)
        return Evidence(self.name, self.level, scores, invalid=invalid, details=details)

    def clean_bound(self, target: AttackTarget) -> float | None:
        """What nearest neighbours find among the same pictures: the lower end of the exact interval over people."""
        features, people, parts = self._taken(target)
        found = retrieval(features[parts.test], features[parts.known], people[parts.test], people[parts.known])
        shares = person_shares(found.hits(1) > 0, people[parts.test])
        return clopper_pearson(round(float(shares.sum())), len(shares)).low

    def _taken(self, target: AttackTarget) -> tuple[Vectors, Codes, Parts]:
        """Features and people of as many pictures as the budget allows, and their parts."""
        assert target.search is not None
        assert target.budget is not None
        people, rng = target.search.identities, target.rng.child(self.name)
        if target.features is not None:
            features = target.features
        else:
            assert target.protected is not None
            assert target.recogniser is not None
            features = target.protected.features(target.recogniser)
        chosen = some_people(people, target.budget.pictures, rng.child("people"))
        return features[chosen], people[chosen], divide_pictures(people[chosen], rng)
