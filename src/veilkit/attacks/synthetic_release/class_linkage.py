"""Linkage by class: which person does the pseudonym of a class stand for?"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from veilkit.attacks.headline import Headline, Risk
from veilkit.attacks.intervals import retrieval_scores
from veilkit.attacks.synthetic_release.base import LabelledPictures, UnpairedAttack, UnpairedNeed, UnpairedTarget
from veilkit.attacks.synthetic_release.nearest import feature_vectors
from veilkit.attacks.target import given
from veilkit.experts import Embedder
from veilkit.metrics import RetrievalResult, retrieval
from veilkit.types import Evidence, Level, Reason, ReasonCode

_SHOWN = ("rank-1", "rank-5", "mAP")


class ClassLinkage(UnpairedAttack):
    """Searches the mean feature of each class's synthetic pictures among the mean features of all training people.

    The adversary knows who may be in the training set (a closed set, its best case) and holds pictures of them:
    others than were trained on, where there are any, else the training pictures themselves.
    """

    name = "class_linkage"
    summary = "finds the person whom a class of synthetic pictures stands for, among all training people"
    level = Level.L0
    headline = Headline(
        "Classes linked to people",
        "{Judge} that holds pictures of all training people names the person whom a class of synthetic pictures "
        "stands for {value} of the time{interval}",
        "names",
        warning="Pseudonyms of classes do not hide who they are.",
    )
    needs = frozenset({UnpairedNeed.EXPERT})

    @classmethod
    def risk(cls) -> Risk:
        """A class and a person's pictures are brought together."""
        return Risk.LINKABILITY

    def run(self, target: UnpairedTarget) -> Evidence:
        """Rank-1, rank-5 and mAP; with one entry for each of N people, chance is 1/N, 5/N and H(N)/N."""
        people = np.unique(_gallery(target).people)
        if len(people) < 2:
            text = "there is one candidate only: nobody to be taken for somebody else"
            return self.not_applicable(Reason(ReasonCode.TOO_FEW_PEOPLE, text))
        if not np.isin(target.release.classes, people).any():
            text = "there are no pictures of the people whom the classes stand for"
            return self.not_applicable(Reason(ReasonCode.NO_ORIGINALS, text))
        count = len(people)
        chance = {f"rank-{k}": min(1.0, k / count) for k in (1, 5, 10)}
        chance["mAP"] = float((1.0 / np.arange(1, count + 1)).sum() / count)
        queries, found = _search(LabelledPictures(target.release.synthetic, target.release.classes), target)
        note = "by pictures that were not trained on" if target.unseen is not None else "by the training pictures"
        scores = retrieval_scores(found, queries, rng=target.rng, chance=chance, note=note)
        details = {
            "chance": {metric: chance[metric] for metric in _SHOWN},
            "people": found.valid_count,
            "candidates": count,
            "recogniser": given(target.recogniser).name,
        }
        return Evidence(self.name, self.level, tuple(s for s in scores if s.metric in _SHOWN), details=details)

    def clean_bound(self, target: UnpairedTarget) -> float | None:
        """Rank-1 of the training pictures' own means."""
        return _search(target.members, target)[1].rank(1)


def person_means(labelled: LabelledPictures, recogniser: Embedder) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
    """Codes (P,), rising, and for each the mean (P, D) of its pictures' features, each scaled to length one."""
    people, place = np.unique(labelled.people, return_inverse=True)
    features = feature_vectors(labelled.pictures, recogniser)
    total = np.zeros((len(people), features.shape[1]))
    np.add.at(total, place, features)
    return people, (total / np.bincount(place)[:, None]).astype(np.float32)


def _gallery(target: UnpairedTarget) -> LabelledPictures:
    return target.members if target.unseen is None else target.unseen


def _search(queries: LabelledPictures, target: UnpairedTarget) -> tuple[NDArray[np.int64], RetrievalResult]:
    """The people whose mean features are searched for in the gallery, and what was found."""
    recogniser = given(target.recogniser)
    asked, features = person_means(queries, recogniser)
    people, entries = person_means(_gallery(target), recogniser)
    # Ties go to the first entry: in a random order they do not follow the people's codes.
    order = target.rng.child("class gallery").permutation(len(people))
    return asked, retrieval(features, entries[order], asked, people[order])
