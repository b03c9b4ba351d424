"""A stock recogniser on protected pictures: the least that anybody can try (L0)."""

from __future__ import annotations

from veilkit.attacks.base import Attack, AttackTarget, Need
from veilkit.attacks.intervals import retrieval_scores
from veilkit.types import Evidence, Level, Role


class StockRecogniser(Attack):
    """Searches protected pictures among protected pictures with a recogniser that has never seen the protection.

    The adversary holds only the release: can it tell which protected pictures show one person?
    """

    name = "stock_recogniser"
    summary = "finds the same person among protected pictures with a recogniser that knows nothing of the protection"
    level = Level.L0
    needs = frozenset({Need.IMAGES, Need.IDENTITIES, Need.EXPERT})

    def run(self, target: AttackTarget) -> Evidence:
        """Rank-k, mAP and mINP of protected queries in the protected gallery."""
        assert target.protected is not None
        assert target.search is not None
        assert target.recogniser is not None
        features = target.protected.features(target.recogniser)
        found = target.search.find(features, features)
        chance = target.search.chance()
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
        """Rank-1 of the same recogniser and search on the originals."""
        if target.originals is None or target.search is None or target.recogniser is None:
            return None
        features = target.originals.features(target.recogniser)
        return target.search.find(features, features).rank(1)
