"""What attacks that search for a person with a stock recogniser share."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping

import numpy as np
from numpy.typing import NDArray

from veilkit.attacks.base import Attack, AttackTarget
from veilkit.attacks.intervals import retrieval_scores
from veilkit.types import Evidence, Role, Score


class PersonSearch(Attack):
    """Searches pictures of a person in some gallery; a subclass says in which."""

    def queries(self, target: AttackTarget) -> NDArray[np.float32]:
        """(N, D) features of the pictures to search with: the protected ones, unless a subclass says otherwise."""
        assert target.protected is not None
        assert target.recogniser is not None
        return target.protected.features(target.recogniser)

    @abstractmethod
    def gallery(self, target: AttackTarget) -> NDArray[np.float32]:
        """(N, D) features of the pictures to search among."""

    def run(self, target: AttackTarget) -> Evidence:
        """Rank-k, mAP and mINP of the queries in the gallery."""
        assert target.search is not None
        assert target.recogniser is not None
        chance = target.search.chance()
        scores = found_among(target, self.queries(target), self.gallery(target), chance)
        queries = int((target.search.candidates()[0] > 0).sum())
        details = {"chance": chance, "recogniser": target.recogniser.name, "queries": queries}
        return Evidence(self.name, self.level, scores, details=details)

    def clean_bound(self, target: AttackTarget) -> float | None:
        """Rank-1 of the same recogniser and search on the originals alone."""
        return rank_one_on_originals(target)


def found_among(
    target: AttackTarget, query: NDArray[np.float32], gallery: NDArray[np.float32], chance: Mapping[str, float]
) -> tuple[Score, ...]:
    """Scores of a search with features (N, D) of all pictures as queries among features (N, D) as gallery."""
    assert target.search is not None
    return retrieval_scores(
        target.search.find(query, gallery),
        target.search.identities[target.search.query],
        role=Role.PRIVACY,
        higher_is_better=False,
        rng=target.rng,
        chance=chance,
    )


def rank_one_on_originals(target: AttackTarget) -> float | None:
    """Rank-1 of the target's recogniser and search on the originals alone; None where something is not known."""
    if target.originals is None or target.search is None or target.recogniser is None:
        return None
    raw = target.originals.features(target.recogniser)
    return target.search.find(raw, raw).rank(1)
