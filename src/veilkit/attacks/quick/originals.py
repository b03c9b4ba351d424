"""Which original was this? Answered in closed form: by colours (L0), by ridge regression (L1), from features (L3)."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import replace

import numpy as np
from sklearn.linear_model import RidgeCV

from veilkit.attacks.base import Attack, AttackTarget, Need
from veilkit.attacks.headline import Headline
from veilkit.attacks.people_split import Division, divide
from veilkit.attacks.pictures import Features
from veilkit.attacks.quick.choices import own_original_scores
from veilkit.attacks.quick.descriptors import Description, layout, seen, standardised
from veilkit.attacks.target import Budget, given
from veilkit.types import Evidence, Level, Reason, ReasonCode

STRENGTHS = np.logspace(0, 5, 11)
_BUDGET = Budget()  # of pictures alone: nothing is trained in steps


class ColourLayout(Attack):
    """Compares where the colours are: the 16 x 8 mean colours of a protected picture with those of all originals.

    Both sets are taken about their own means, so that a protection that shifts all colours hides nothing.
    """

    name = "colour_layout"
    summary = "finds the original of a protected picture by where its colours are"
    level = Level.L0
    headline = Headline(
        "Protected pictures linked by their colours",
        "Comparing where colours are finds the very original of a protected picture {value} of the time{interval}",
    )
    needs = frozenset({Need.IMAGES, Need.PAIRS})

    def run(self, target: AttackTarget) -> Evidence:
        """Paired choices, and Rank-1 of the very original."""
        if len(target.clusters) < 2:
            return self.not_applicable(
                Reason(ReasonCode.ONE_PICTURE, "a single picture can only be linked to itself")
            )
        released, raw = (layout(each) for each in (given(target.protected), given(target.originals)))
        scores, chance = own_original_scores(target, released - released.mean(axis=0), raw - raw.mean(axis=0))
        return Evidence(self.name, self.level, scores, details={"chance": chance})


class RidgeAttack(Attack):
    """What those share who learn by ridge regression on other people what an original is told by.

    The strength of the ridge is chosen by leaving out one public picture at a time.
    """

    @abstractmethod
    def lessons(self, target: AttackTarget, division: Division) -> tuple[Features, Features]:
        """What is seen of each public picture, and of each victim's."""

    def run(self, target: AttackTarget) -> Evidence:
        """Paired choices, and Rank-1 of the very original."""
        division = divide(replace(target, budget=target.budget or _BUDGET))
        if division.missing:
            return self.not_applicable(*division.missing)
        recogniser, originals = given(target.recogniser), division.public.originals
        description = Description.learn(originals, recogniser)
        taught, asked = (standardised(each) for each in self.lessons(target, division))
        answers = RidgeCV(STRENGTHS).fit(taught, description.of(originals, recogniser)).predict(asked)
        truth = description.of(given(division.victims.originals), recogniser)
        scores, chance = own_original_scores(division.victims, np.asarray(answers, dtype=np.float32), truth)
        details = {**division.details, "chance": chance, "recogniser": recogniser.name}
        return Evidence(self.name, self.level, scores, details=details)


class LinearRecovery(RidgeAttack):
    """Learns on other people's pairs how originals' colours and features follow from protected pictures'."""

    name = "linear_recovery"
    summary = "ridge regression from protected pictures to originals, learned on other people's pairs"
    level = Level.L1
    headline = Headline(
        "Originals told by regression",
        "An attacker who fitted a regression to other people's pairs finds the very original of a protected picture "
        "{value} of the time{interval}",
    )
    needs = frozenset({Need.IMAGES, Need.PAIRS, Need.EXPERT})

    def lessons(self, target: AttackTarget, division: Division) -> tuple[Features, Features]:
        """Colours and features of protected pictures."""
        recogniser = given(target.recogniser)
        return seen(division.public.protected, recogniser), seen(given(division.victims.protected), recogniser)


class LinearDecoder(RidgeAttack):
    """Learns on public originals what the authorised expert's features say of a picture, and reads the release.

    A protection that keeps the expert's features makes f(protected) about f(original): no protected pair is needed.
    """

    name = "linear_decoder"
    summary = "reads originals out of the authorised expert's features, by regression on public originals"
    level = Level.L3
    headline = Headline(
        "Originals read from features",
        "An attacker who holds the authorised recogniser, and fitted a regression to public originals, finds the "
        "very original of a protected picture {value} of the time{interval}",
    )
    needs = frozenset({Need.IMAGES, Need.PAIRS, Need.EXPERT, Need.AUTHORISED})

    def lessons(self, target: AttackTarget, division: Division) -> tuple[Features, Features]:
        """The authorised expert's features: of public originals, of the victims' protected pictures."""
        expert = given(target.authorised)
        return division.public.originals.features(expert), given(division.victims.protected).features(expert)
