"""What does the person wear? Colours of clothes, told from protected pictures (L1)."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from sklearn.linear_model import RidgeCV

from veilkit.attacks.base import Attack, AttackTarget, Need
from veilkit.attacks.headline import Headline
from veilkit.attacks.people_split import divide
from veilkit.attacks.pictures import Features, Pictures
from veilkit.attacks.quick.choices import PAIRED, own_original_scores
from veilkit.attacks.quick.descriptors import LAYOUT, layout, seen, standardised
from veilkit.attacks.quick.originals import STRENGTHS
from veilkit.attacks.target import Budget, given
from veilkit.types import Evidence, Level

_PARTS = (slice(3, 7), slice(9, 14))  # rows of the layout: upper and lower clothes
_MIDDLE = slice(2, 6)  # columns in which a standing person is


class Clothes(Attack):
    """Learns on other people's pairs to tell the colours of upper and lower clothes from a protected picture.

    "paired choice": they are nearer to what the person wore than to what another one did. Who knows what somebody
    wore needs no face.
    """

    name = "clothes"
    summary = "tells the colours of clothes from protected pictures, learned on other people's pairs"
    level = Level.L1
    tells_identity = False
    headline = Headline(
        "Colours of clothes told",
        "An attacker who learned from other people's pairs tells the colours of somebody's clothes from those of "
        "another's {value} of the time{interval}",
        "tells",
        metric=PAIRED,
    )
    needs = frozenset({Need.IMAGES, Need.PAIRS, Need.EXPERT})

    def run(self, target: AttackTarget) -> Evidence:
        """Paired choices between the clothes of two people."""
        division = divide(replace(target, budget=target.budget or Budget()))
        if division.missing:
            return self.not_applicable(*division.missing)
        public, victims, recogniser = division.public, division.victims, given(target.recogniser)
        sides = (public.protected, given(victims.protected))
        taught, asked = (standardised(seen(side, recogniser)) for side in sides)
        worn, truth = (_worn(each) for each in (public.originals, given(victims.originals)))
        told = np.asarray(RidgeCV(STRENGTHS).fit(taught, worn).predict(asked), dtype=np.float32)
        (paired, _), chance = own_original_scores(victims, *(each - worn.mean(axis=0) for each in (told, truth)))
        details = {**division.details, "chance": {PAIRED: chance[PAIRED]}, "recogniser": recogniser.name}
        return Evidence(self.name, self.level, (paired,), details=details)


def _worn(pictures: Pictures) -> Features:
    """(N, 6) mean colours of upper and lower clothes."""
    grid = layout(pictures).reshape(len(pictures), 3, *LAYOUT)[..., _MIDDLE]
    return np.concatenate([grid[:, :, rows].mean(axis=(2, 3)) for rows in _PARTS], axis=1)
