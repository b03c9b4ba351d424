"""Farthest match: a protection that pushes identities away is undone by looking for the least similar."""

from __future__ import annotations

from dataclasses import replace
from typing import Self

import numpy as np

from veilkit.attacks.base import Attack, AttackTarget, Need
from veilkit.attacks.headline import Headline
from veilkit.attacks.person_search import found_among, rank_one_on_originals
from veilkit.attacks.pictures import Features
from veilkit.attacks.target import given
from veilkit.types import Evidence, Level

_TINY = 1e-12


class FarthestMatch(Attack):
    """Searches each protected picture among raw pictures for whom it is least like: whose antipode is it?

    A recogniser that matches a face with its person less often than with strangers knows something: the identity was
    pushed away on purpose. "rank-1": the person of the least similar raw picture, the own one left out.
    "centred": the same about the mean of the raw features, where these all lie on one side.

    Gates: where nothing is protected nobody is pushed away. There the attacker sees mirrored features, and must find
    what the recogniser finds by looking for the most similar.
    """

    name = "farthest_match"
    summary = "names the person in a protected picture by the raw pictures that are least like it"
    level = Level.L0
    headline = Headline(
        "Protected pictures linked by being unlike",
        "{Judge} that holds other, raw pictures of these people and looks for the least similar names the person in "
        "a protected one {value} of the time{interval}",
        "names",
    )
    needs = frozenset({Need.IMAGES, Need.PAIRS, Need.IDENTITIES, Need.EXPERT})

    def __init__(self) -> None:
        self._mirrors = False

    def informed_by(self, evidence: Evidence) -> Self:
        """That this is a gate, where nothing was pushed away."""
        self._mirrors = True
        return self

    def run(self, target: AttackTarget) -> Evidence:
        """Rank-k, mAP and mINP of the farthest raw pictures; the same about their mean."""
        protected, raw = _unit(target.protected_features()), _unit(target.original_features())
        middle = raw.mean(axis=0)
        seen = -protected if self._mirrors else protected
        about = seen + middle if self._mirrors else seen - middle
        chance = given(target.search).chance()
        scores = list(found_among(target, -seen, raw, chance))
        scores += [
            replace(score, metric=f"centred {score.metric}")
            for score in found_among(target, -about, raw - middle, chance)
        ]
        chance |= {f"centred {metric}": value for metric, value in chance.items()}
        details = {"chance": chance, "recogniser": given(target.recogniser).name}
        return Evidence(self.name, self.level, tuple(scores), details=details)

    def clean_bound(self, target: AttackTarget) -> float | None:
        """Rank-1 of the same recogniser and search on the originals alone, by the most similar."""
        return rank_one_on_originals(target)


def _unit(features: Features) -> Features:
    return np.asarray(features / np.maximum(np.linalg.norm(features, axis=1, keepdims=True), _TINY))
