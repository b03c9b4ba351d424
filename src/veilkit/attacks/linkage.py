"""Linkage by person: protected pictures searched among raw pictures of the same people."""

from __future__ import annotations

from veilkit.attacks.base import Attack, AttackTarget, Need
from veilkit.attacks.intervals import retrieval_scores
from veilkit.types import Evidence, Level, Role


class Linkage(Attack):
    """Searches each protected picture among raw pictures with a stock recogniser: who is it?

    The picture's own original is not among them; the right person must be named by another raw picture. The adversary
    holds raw pictures of the people, as a photo archive does, but has not trained on protected ones: a recogniser
    that has is a stronger, L2 adversary.
    """

    name = "linkage"
    summary = "names the person in a protected picture by searching it among other, raw pictures"
    level = Level.L0
    needs = frozenset({Need.IMAGES, Need.PAIRS, Need.IDENTITIES, Need.EXPERT})

    def run(self, target: AttackTarget) -> Evidence:
        """Rank-k, mAP and mINP of protected queries in the raw gallery."""
        assert target.protected is not None
        assert target.originals is not None
        assert target.search is not None
        assert target.recogniser is not None
        chance = target.search.chance()
        found = target.search.find(
            target.protected.features(target.recogniser), target.originals.features(target.recogniser)
        )
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
        """Rank-1 of raw pictures searched among raw ones."""
        if target.originals is None or target.search is None or target.recogniser is None:
            return None
        raw = target.originals.features(target.recogniser)
        return target.search.find(raw, raw).rank(1)
