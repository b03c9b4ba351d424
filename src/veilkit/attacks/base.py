"""What an attack is: what its adversary knows, what it needs, and what it found."""

from __future__ import annotations

from abc import abstractmethod
from enum import StrEnum
from pathlib import Path
from typing import ClassVar, Literal, Self

from veilkit.attacks.headline import Described, Risk
from veilkit.attacks.target import AttackTarget as AttackTarget  # attacks take it from here, with all that they need
from veilkit.types import Evidence, Reason, ReasonCode


class Need(StrEnum):
    """Something without which an attack does not apply."""

    IMAGES = "images"
    FEATURES = "features"
    PAIRS = "pairs"
    IDENTITIES = "identities"
    EXPERT = "expert"
    BUDGET = "budget"
    PROTECTOR = "protector"
    AUTHORISED = "authorised expert"
    MASKS = "masks"
    DECODER = "decoder"
    NEUTRAL = "one identity for everybody"
    IDENTITY = "own identity expert"


FROM_SCRATCH = "scratch"
"""`details["started from"]` of an attacker who trains a recogniser and had no weights."""
_LEARNS = "no budget given: an attack that learns or optimises takes minutes to hours"
LACKING = {
    Need.IMAGES: Reason(ReasonCode.NO_IMAGES, "the release holds no images"),
    Need.FEATURES: Reason(ReasonCode.NO_FEATURES, "the release holds no features"),
    Need.PAIRS: Reason(ReasonCode.NO_PAIRS, "it is not known which original belongs to which protected picture"),
    Need.IDENTITIES: Reason(
        ReasonCode.NO_IDENTITIES, "people cannot be searched for with what is known of the pictures"
    ),
    Need.EXPERT: Reason(ReasonCode.NO_EXPERT, "there is no recogniser to attack with"),
    Need.BUDGET: Reason(ReasonCode.NO_BUDGET, _LEARNS),
    Need.PROTECTOR: Reason(ReasonCode.NO_PROTECTOR, "the protection cannot be run again under other keys"),
    Need.AUTHORISED: Reason(ReasonCode.NO_AUTHORISED, "the authorised recogniser is not at hand"),
    Need.MASKS: Reason(ReasonCode.NO_MASKS, "it is not known where the people stand in the originals"),
    Need.DECODER: Reason(ReasonCode.NO_DECODER, "no decoder of this release is at hand"),
    Need.NEUTRAL: Reason(
        ReasonCode.NO_NEUTRAL, "the protection cannot be run with one and the same identity for everybody"
    ),
    Need.IDENTITY: Reason(
        ReasonCode.NO_IDENTITY_EXPERT, "the protection injects no identity, or its model is not at hand"
    ),
}


_FIELDS = {  # of a target that hold it
    Need.IMAGES: "protected",
    Need.FEATURES: "features",
    Need.PAIRS: "originals",
    Need.IDENTITIES: "search",
    Need.EXPERT: "recogniser",
    Need.BUDGET: "budget",
    Need.PROTECTOR: "protector",
    Need.AUTHORISED: "authorised",
    Need.MASKS: "masks",
    Need.DECODER: "decoder",
    Need.NEUTRAL: "neutral",
    Need.IDENTITY: "identity",
}


class Attack(Described):
    """An adversary of one level. A subclass sets the class attributes and writes `run`.

    The first score of its evidence is the headline, by which the gates judge it; `details["chance"]` holds, for each
    metric that has one, what blind guessing scores. `Evidence.invalid` of `run` holds the reasons of gates of its
    own: a loss that still fell.

    uses_weights: whether it may start from public weights (`target.start`). searches: the kind of its queries and of
    its gallery, where it is a plain search by the judge, so that two audits can be compared search by search.
    """

    needs: ClassVar[frozenset[Need]]
    uses_weights: ClassVar[bool] = False
    searches: ClassVar[tuple[Literal["raw", "protected"], Literal["raw", "protected"]] | None] = None

    @classmethod
    def weights_facts(cls, start: Path | None) -> dict[str, str]:
        """What a result depends on where the attacker starts from weights; checked here. Nothing by default."""
        return {}

    @classmethod
    def risk(cls) -> Risk:
        """Who knows of each picture whose it is asks whether pictures of one person can be linked."""
        return Risk.LINKABILITY if cls.tells_identity and Need.IDENTITIES in cls.needs else super().risk()

    def informed_by(self, evidence: Evidence) -> Self:
        """Take from the evidence on a release what the gates cannot show: a grid, a ratio. Nothing by default.

        Gates attack pictures that were never protected. A fresh attacker that would find nothing to undo there is
        told what a manifest would tell; then its answer can be judged.
        """
        return self

    @abstractmethod
    def run(self, target: AttackTarget) -> Evidence:
        """Attack; the target has all that the attack needs. Gates are applied by `gated.run_gated`."""

    def clean_bound(self, target: AttackTarget) -> float | None:
        """What the headline must reach where nothing is protected; None for "surely more than chance"."""
        return None

    def lacking(self, target: AttackTarget) -> tuple[Reason, ...]:
        """Why the attack does not apply, or nothing."""
        return tuple(LACKING[need] for need in Need if need in self.needs and getattr(target, _FIELDS[need]) is None)
