"""Linkage by picture: which original was this protected picture made from?"""

from __future__ import annotations

from veilkit.attacks.base import Attack, AttackTarget, Need
from veilkit.attacks.headline import Headline
from veilkit.attacks.intervals import RANKS, retrieval_scores
from veilkit.attacks.recovered import own_bound
from veilkit.attacks.target import given
from veilkit.types import Evidence, Level, Reason, ReasonCode


class OwnOriginal(Attack):
    """Searches each protected picture among all originals with a stock recogniser; right is its own original only.

    Needs no labels. The adversary holds the originals, or copies of them, and learns which pseudonym is which: with
    it, whatever else is published under the pseudonym. Pictures of equal features count for the first of them only.
    """

    name = "own_original"
    summary = "finds the very original that a protected picture was made from, among all originals"
    level = Level.L0
    headline = Headline(
        "Protected pictures linked to their originals",
        "{Judge} that holds all originals finds the very one that a protected picture was made from {value} of the "
        "time{interval}",
    )
    needs = frozenset({Need.IMAGES, Need.PAIRS, Need.EXPERT})

    def run(self, target: AttackTarget) -> Evidence:
        """Rank-1, 5 and 10."""
        count = len(given(target.originals))
        if count < 2:
            reason = Reason(ReasonCode.ONE_PICTURE, "a single picture can only be linked to itself")
            return self.not_applicable(reason)
        chance = {f"rank-{k}": min(1.0, k / count) for k in RANKS}
        found = target.find_own(target.protected_features())
        scores = retrieval_scores(found, target.clusters, rng=target.rng, chance=chance)
        details = {"chance": chance, "recogniser": given(target.recogniser).name, "queries": count}
        # With a single right answer mAP and mINP say the same once more.
        return Evidence(self.name, self.level, scores[: len(RANKS)], details=details)

    def clean_bound(self, target: AttackTarget) -> float | None:
        """The share of originals that are found among the originals: 1, less those that look like an earlier one."""
        return own_bound(target)
