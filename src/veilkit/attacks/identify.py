"""Closed-set identification: learns people from some of their pictures, and names them in others (PEPR-Net's metric).

The one attack here whose people are the same in training and test: what differs is the pictures. It says how much of
who somebody is lies in a feature, to whoever can put names to a part of a gallery.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from veilkit.attacks.base import Attack, AttackTarget, Need
from veilkit.attacks.headline import Headline
from veilkit.attacks.intervals import mean_score
from veilkit.attacks.people_split import some_people
from veilkit.attacks.pictures import Features
from veilkit.attacks.target import given
from veilkit.errors import DataError
from veilkit.metrics import clopper_pearson, retrieval
from veilkit.metrics.inputs import l2_normalised
from veilkit.rng import Randomness
from veilkit.types import Evidence, Level, Reason, ReasonCode

Codes = NDArray[np.int64]
Shares = NDArray[np.float64]
SOFTMAX, NEIGHBOUR, CENTROID = "softmax", "1-NN", "centroid"
CLASSIFIERS = (SOFTMAX, NEIGHBOUR, CENTROID)
ACCURACY = "accuracy"
FEWEST = 3  # pictures of a person: one to learn from, one to choose by, one to be asked about
_VALIDATION, _TEST = 0.2, 0.3
_CLOSED = "the same people, by other pictures of theirs, taught it"
STRENGTHS = (0.01, 0.1, 1.0, 10.0, 100.0)
_CHUNK = 1024
_AT_FIRST, _AT_MOST = 200, 20_000  # iterations before the limit is raised, and in all
_TOLERANCE = 1e-4
_TINY = 1e-12


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


def identify(features: Features, people: Codes, parts: Parts) -> Identified:
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


def nearest_neighbour(known: Features, people: Codes, asked: Features) -> Codes:
    """For each vector asked (Q, D) the person (of `people`, (N,)) of the known one (N, D) closest by cosine."""
    held = l2_normalised(known)
    parts = [l2_normalised(asked[at : at + _CHUNK]) @ held.T for at in range(0, len(asked), _CHUNK)]
    return np.concatenate([people[part.argmax(axis=1)] for part in parts])


def nearest_centroid(known: Features, people: Codes, asked: Features) -> Codes:
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
    known: Features,
    people: Codes,
    asked: Features,
    *,
    strengths: Sequence[float] = STRENGTHS,
    at_most: int = _AT_MOST,
) -> dict[float, Softmax]:
    """Multinomial logistic regression with an L2 penalty, for each strength C, by L-BFGS until it has converged.

    Every person counts the same, however many pictures teach it. The limit on iterations is raised until none is
    needed; what has not converged after `at_most` says so. Stronger ones go on from weaker ones, which saves time and
    changes nothing: the problem is convex. Features are centred, and divided by one spread for all dimensions.
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

    def lacking(self, target: AttackTarget) -> tuple[Reason, ...]:
        """Besides what is always needed: features, or else pictures and a recogniser."""
        missing = super().lacking(target)
        if missing or target.features is not None or (target.protected is not None and target.recogniser is not None):
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
            mean_score(metric, shares, found.people, rng=target.rng,
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

    def _taken(self, target: AttackTarget) -> tuple[Features, Codes, Parts]:
        """Features and people of as many pictures as the budget allows, and their parts."""
        people, rng = given(target.search).identities, target.rng.child(self.name)
        features = target.protected_features() if target.features is None else target.features
        chosen = some_people(people, given(target.budget).pictures, rng.child("people"))
        return features[chosen], people[chosen], divide_pictures(people[chosen], rng)
