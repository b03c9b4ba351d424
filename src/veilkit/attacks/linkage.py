"""Linkage: protected pictures searched among raw ones (L0, with pictures of the same people at hand)."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from veilkit.attacks.base import Attack, AttackTarget, Need
from veilkit.attacks.intervals import retrieval_scores
from veilkit.attacks.search import Search
from veilkit.metrics import RetrievalResult, retrieval
from veilkit.types import Evidence, Level, Role, Score

OWN = "own original, "


class Linkage(Attack):
    """Searches each protected picture among raw pictures with a stock recogniser.

    By person, where people are known: is the right person named by *another* raw picture of them? By picture, always:
    is the very original found among all originals? The adversary holds raw pictures of the people, as a photo archive
    does, but has not trained on protected ones: a recogniser that has is a stronger, L2 adversary.
    """

    name = "linkage"
    summary = "names the person in a protected picture by searching it among raw pictures"
    level = Level.L0
    needs = frozenset({Need.IMAGES, Need.PAIRS, Need.EXPERT})

    def run(self, target: AttackTarget) -> Evidence:
        """Scores by person (where people are known) and by picture ("own original, ...")."""
        assert target.protected is not None
        assert target.originals is not None
        assert target.recogniser is not None
        protected = target.protected.features(target.recogniser)
        raw = target.originals.features(target.recogniser)
        scores: tuple[Score, ...] = ()
        chance: dict[str, float] = {}
        if target.search is not None:
            chance = target.search.chance()
            scores = retrieval_scores(
                target.search.find(protected, raw),
                target.search.identities[target.search.query],
                role=Role.PRIVACY,
                higher_is_better=False,
                rng=target.rng.child(self.name, "person"),
                chance=chance,
            )
        if len(raw) > 1:
            own_chance = {f"rank-{k}": min(1.0, k / len(raw)) for k in (1, 5, 10)}
            scores += self._own_scores(target, own_original(protected, raw), own_chance)
            chance |= {OWN + metric: value for metric, value in own_chance.items()}
        return Evidence(
            self.name,
            self.level,
            scores,
            applicable=bool(scores),
            reason="" if scores else "a single picture can only be linked to itself",
            details={"chance": chance, "recogniser": target.recogniser.name, "queries": len(raw)},
        )

    def _own_scores(
        self, target: AttackTarget, found: RetrievalResult, chance: dict[str, float]
    ) -> tuple[Score, ...]:
        people = np.arange(len(found.valid)) if target.people is None else target.people
        scores = retrieval_scores(
            found,
            people,
            role=Role.PRIVACY,
            higher_is_better=False,
            rng=target.rng.child(self.name, "picture"),
            chance=chance,
            prefix=OWN,
        )
        return scores[:3]  # with a single right answer mAP and mINP say the same once more

    def clean_bound(self, target: AttackTarget) -> float | None:
        """Rank-1 of raw pictures searched among raw ones, by person or else by picture."""
        if target.originals is None or target.recogniser is None:
            return None
        raw = target.originals.features(target.recogniser)
        if isinstance(target.search, Search):
            return target.search.find(raw, raw).rank(1)
        return own_original(raw, raw).rank(1)


def own_original(protected: NDArray[np.float32], raw: NDArray[np.float32]) -> RetrievalResult:
    """Each protected picture (N, D) searched among all originals (N, D); right is its own only."""
    each = np.arange(len(raw))
    return retrieval(protected, raw, each, each)
