"""Who is this? By discriminants learned from other people's protected pictures (L2), or a stolen expert (L3)."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import solve_triangular
from sklearn.covariance import ledoit_wolf

from veilkit.attacks.base import Attack, AttackTarget, Need
from veilkit.attacks.headline import Headline
from veilkit.attacks.people_split import FEWEST, divide, unsearchable
from veilkit.attacks.person_search import found_among
from veilkit.attacks.pictures import Features
from veilkit.attacks.quick.choices import BLIND, PAIRED, same_person_score
from veilkit.attacks.quick.descriptors import Axes, standardised, worn
from veilkit.attacks.target import Budget, given
from veilkit.types import Evidence, Level, Reason, ReasonCode

_COMPONENTS = 128
_FLOOR = 0.05  # of the variance in a direction, that pictures of one person differ by at least


class Discriminant(Attack):
    """Learns from protected pictures of other people which differences matter, and searches for the victims by them.

    Colours from head to foot and a recogniser's features are whitened by how pictures of one person differ (WCCN).
    """

    name = "discriminant"
    summary = "finds people in the release by discriminants learned from other people's protected pictures"
    level = Level.L2
    headline = Headline(
        "People found by learned differences",
        "An attacker who learned from other people's protected pictures which differences matter finds the right "
        "person {value} of the time{interval}",
    )
    needs = frozenset({Need.IMAGES, Need.PAIRS, Need.IDENTITIES, Need.EXPERT})

    def run(self, target: AttackTarget) -> Evidence:
        """Paired choices, Rank-k, mAP and mINP, protected pictures among protected ones."""
        division = divide(replace(target, budget=target.budget or Budget()))
        if division.missing:
            return self.not_applicable(*division.missing)
        public, victims, recogniser = division.public, division.victims, given(target.recogniser)
        codes, counts = np.unique(public.people, return_counts=True)
        twice = np.isin(public.people, codes[counts >= 2])
        if (counts >= 2).sum() < FEWEST:
            text = f"{(counts >= 2).sum()} public people have two pictures; at least {FEWEST} are needed"
            return self.not_applicable(Reason(ReasonCode.TOO_FEW_PEOPLE, text))
        if missing := unsearchable(victims):
            return self.not_applicable(*missing)
        taught = standardised(worn(public.protected, recogniser))[twice]
        asked = standardised(worn(given(victims.protected), recogniser))
        asked = _whitened(taught, public.people[twice], asked)
        chance = {PAIRED: BLIND, **given(victims.search).chance()}
        scores = (same_person_score(victims, asked, asked), *found_among(victims, asked, asked, chance))
        details = {**division.details, "chance": chance, "recogniser": recogniser.name}
        return Evidence(self.name, self.level, scores, details=details)


def _whitened(taught: Features, people: NDArray[np.int64], asked: Features) -> Features:
    """(N, K) of the pictures asked about, in which pictures of one person differ as much in every direction."""
    axes = Axes.of(taught, _COMPONENTS)
    known, unknown = axes(taught), axes(asked)
    _, place = np.unique(people, return_inverse=True)
    counts = np.bincount(place)[:, None]
    means = np.stack([np.bincount(place, weights=column) for column in known.T], axis=1) / counts
    covariance, _ = ledoit_wolf(known - means[place])
    covariance += _FLOOR * np.eye(len(covariance))
    return np.asarray(solve_triangular(np.linalg.cholesky(covariance), unknown.T, lower=True).T, dtype=np.float32)


class StolenExpert(Attack):
    """Searches for raw pictures of people in the release with the stolen authorised expert, as its user does."""

    name = "stolen_expert"
    summary = "finds the person of a raw picture in the release with the authorised recogniser"
    level = Level.L3
    headline = Headline(
        "People found with the authorised recogniser",
        "Whoever holds the authorised recogniser finds the person of a raw picture in the release {value} of the "
        "time{interval}",
    )
    needs = frozenset({Need.IMAGES, Need.PAIRS, Need.IDENTITIES, Need.AUTHORISED})

    def run(self, target: AttackTarget) -> Evidence:
        """Paired choices, Rank-k, mAP and mINP, raw pictures among protected ones."""
        search, expert = given(target.search), given(target.authorised)
        raw, released = (given(each).features(expert) for each in (target.originals, target.protected))
        chance = {PAIRED: BLIND, **search.chance()}
        scores = (same_person_score(target, raw, released), *found_among(target, raw, released, chance))
        queries = int((search.candidates()[0] > 0).sum())
        details = {"chance": chance, "recogniser": expert.name, "queries": queries}
        return Evidence(self.name, self.level, scores, details=details)
