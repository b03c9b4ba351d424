"""Membership inference calibrated by shadows: a candidate is compared with itself under models that do not know it.

Some pictures look like members to every model. LiRA therefore asks how far the release's statistic lies from what the
same recipe gives on other people. See `shadows` for what stands in for LiRA's online form.
"""

from __future__ import annotations

import numpy as np

from veilkit.attacks.synthetic_release.base import UnpairedNeed, UnpairedTarget
from veilkit.attacks.synthetic_release.membership import (
    MEMORISED,
    NEEDS,
    Membership,
    Question,
    membership_headline,
    sides,
)
from veilkit.attacks.synthetic_release.nearest import RememberedPictures
from veilkit.attacks.synthetic_release.shadows import (
    Mask,
    Shadows,
    Shift,
    Values,
    log_likelihood_ratio,
    measure_shift,
    offline_score,
    standardised,
)
from veilkit.attacks.synthetic_release.signals import LABELS, SET, STUDENT, Signal
from veilkit.types import Evidence, Level

_CHOSEN = {  # of each signal one statistic for each question, fixed beforehand: the best of many beats chance
    STUDENT: {Question.PERSON: "confidence", Question.PICTURE: "confidence"},
    LABELS: {Question.PERSON: "confidence", Question.PICTURE: "confidence"},
    SET: {Question.PERSON: "recogniser", Question.PICTURE: "pixels"},
}


class ShadowMembership(Membership):
    """LiRA with the in/out ratio (headline), LiRA offline and the uncalibrated threshold, on each signal there is.

    The headline's signal is the student, else the soft labels, else the synthetic set.
    """

    level = Level.L2

    def run(self, target: UnpairedTarget) -> Evidence:
        """AUC, TPR at 1 % FPR and balanced accuracy of the headline; AUC of the others."""
        shadows = target.shadows
        assert shadows is not None
        inside, outside, _ = sides(target, self.question)
        pictures = [RememberedPictures(part) for part in (inside.pictures, outside.pictures, shadows.public)]
        statistics: dict[str, Values] = {}
        for signal in _signals(target, shadows):
            rows = [
                [
                    signal.statistics(release, part, target.recogniser)[_CHOSEN[signal][self.question]]
                    for part in pictures
                ]
                for release in (target.release, *shadows.releases)
            ]
            candidates = np.stack([np.concatenate(row[:2]) for row in rows])
            own, others = candidates[0], candidates[1:]
            known = np.stack([row[2] for row in rows])
            shift = public_shift(shadows, known[1:], self.question)
            # The release's model may be surer of everybody than a shadow, of which public people tell how much.
            strangers = known[0] - np.average(known[1:], axis=0, weights=~shadows.plan.known)
            units = standardised(own - others.mean(axis=0), (float(strangers.mean()), float(strangers.std())))
            statistics[f"{signal.name}, LiRA"] = log_likelihood_ratio(units, shift.inside, shift.outside)
            statistics[f"{signal.name}, LiRA offline"] = offline_score(own - strangers.mean(), others)
            statistics[f"{signal.name}, one threshold"] = own
        headline = next(iter(statistics))
        details = {
            "adversary holds": "the release, and a public population on which it runs the same recipe",
            "shadows": len(shadows),
            "public people": len(np.unique(shadows.people)),
            "headline": headline,
        }
        return self.judge(target, statistics, headline, details)


def _signals(target: UnpairedTarget, shadows: Shadows) -> list[Signal]:
    """The signals that can be taken from the release and from every shadow."""
    releases = (target.release, *shadows.releases)
    student = all(release.student is not None for release in releases)
    labels = all(release.soft_labels is not None for release in releases)
    return [*([STUDENT] if student else []), *([LABELS] if labels else []), SET]


def public_shift(shadows: Shadows, values: Values, question: Question) -> Shift:
    """What membership does to a statistic (S, N) of the public pictures under each shadow."""
    plan = shadows.plan
    unknown, unseen = ~plan.known, plan.unseen
    roles: tuple[Mask, Mask]
    if not unseen.any():  # all pictures of a person were trained on: the two questions are one
        roles = plan.trained, unknown
    elif question is Question.PERSON:
        roles = unseen, unknown
    else:
        roles = plan.trained, unseen
    return measure_shift(values, unknown, *roles)


class PersonByShadows(ShadowMembership):
    """People about whom the release says more than shadows that do not know them."""

    name = "membership_shadows_person"
    summary = "tells training people by a likelihood ratio against shadow models (LiRA)"
    headline = membership_headline(Question.PERSON, "shadow models")
    question = Question.PERSON
    needs = NEEDS[Question.PERSON] | {UnpairedNeed.SHADOWS, UnpairedNeed.EXPERT}


class PictureByShadows(ShadowMembership):
    """Pictures about which the release says more than shadows that do not know them."""

    name = "membership_shadows_picture"
    summary = "tells training pictures by a likelihood ratio against shadow models (LiRA)"
    headline = membership_headline(Question.PICTURE, "shadow models")
    question = Question.PICTURE
    needs = NEEDS[Question.PICTURE] | {UnpairedNeed.SHADOWS, UnpairedNeed.EXPERT}

    def clean_bound(self, target: UnpairedTarget) -> float | None:
        """Nine pairs of ten, where student and set are the training pictures."""
        return MEMORISED
