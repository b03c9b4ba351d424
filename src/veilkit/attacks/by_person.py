"""What attacks that search for a person with a stock recogniser share."""

from __future__ import annotations

from abc import abstractmethod

import numpy as np
from numpy.typing import NDArray

from veilkit.attacks.base import Attack, AttackTarget
from veilkit.attacks.intervals import retrieval_scores
from veilkit.types import Evidence, Role


class PersonSearch(Attack):
    """Searches protected pictures of a person in some gallery; a subclass says in which."""

    @abstractmethod
    def gallery(self, target: AttackTarget) -> NDArray[np.float32]:
        """(N, D) features of the pictures to search among."""

    def run(self, target: AttackTarget) -> Evidence:
        """Rank-k, mAP and mINP of protected queries in the gallery."""
        assert target.protected is not None
        assert target.search is not None
        assert target.recogniser is not None
        chance = target.search.chance()
        found = target.search.find(target.protected.features(target.recogniser), self.gallery(target))
        scores = retrieval_scores(
            found,
            target.search.identities[target.search.query],
            role=Role.PRIVACY,
            higher_is_better=False,
            rng=target.rng,
            chance=chance,
        )
        details = {"chance": chance, "recogniser": target.recogniser.name, "queries": found.valid_count}
        return Evidence(self.name, self.level, scores, details=details)

    def clean_bound(self, target: AttackTarget) -> float | None:
        """Rank-1 of the same recogniser and search on the originals alone."""
        if target.originals is None or target.search is None or target.recogniser is None:
            return None
        raw = target.originals.features(target.recogniser)
        return target.search.find(raw, raw).rank(1)
