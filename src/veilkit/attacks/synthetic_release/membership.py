"""Membership inference: was this person, or this very picture, in the training set?

The two questions differ. *Person*: other pictures of training people (none of them trained on) against pictures of
people outside; each person is one candidate. *Picture*: pictures trained on against other pictures of the same
people, so that knowing the person does not help; where there are none, against pictures of other people, which is
easier, and said.

Some pictures look like members to every model. Attacks with one threshold for all candidates ignore that; attacks by
shadows compare a candidate with itself under models that do not know it (LiRA; see `shadows`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from veilkit.attacks.headline import Headline
from veilkit.attacks.membership_scores import AUC, Judged, membership_scores
from veilkit.attacks.synthetic_release.base import LabelledPictures, UnpairedAttack, UnpairedNeed, UnpairedTarget
from veilkit.attacks.synthetic_release.nearest import RememberedPictures, nearest, pixel_vectors
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
from veilkit.attacks.synthetic_release.signals import LABELS, SET, STUDENT, Question, Signal
from veilkit.attacks.target import given
from veilkit.types import Evidence, Level, Reason, ReasonCode, Score

_NEEDS = {
    Question.PERSON: frozenset({UnpairedNeed.UNSEEN, UnpairedNeed.HELD_OUT}),
    Question.PICTURE: frozenset({UnpairedNeed.NON_MEMBERS}),
}
_MEMBERS = {Question.PERSON: "training people", Question.PICTURE: "training pictures"}
_CANDIDATES = {
    Question.PERSON: "Of a training person and somebody who was not trained on",
    Question.PICTURE: "Of a picture that was trained on and one that was not",
}
_CAVEAT = "The others are pictures of other people, so that it may be the person who was found."
MEMORISED = 0.9  # AUC that a model which memorises its training pictures must be caught with


def sides(target: UnpairedTarget, question: Question) -> tuple[LabelledPictures, LabelledPictures, str]:
    """Candidates inside and outside the training set, and a note on them."""
    if question is Question.PERSON:
        return given(target.unseen), given(target.held_out), "by pictures that were not trained on"
    if target.unseen is not None:
        return target.members, target.unseen, "against other pictures of the same people"
    return (
        target.members,
        given(target.held_out),
        "against other people: what is found may be the person, not the picture",
    )


class Membership(UnpairedAttack):
    """Judges candidates by statistics that are larger for members. A subclass gives them.

    question: what it asks. signal, title, how: by what, in its name, its headline and its summary.
    """

    question: ClassVar[Question]

    def __init_subclass__(
        cls, question: Question | None = None, signal: str = "", title: str = "", how: str = "", **others: Any
    ) -> None:
        if question is not None:
            cls.question, cls.name = question, f"membership_{signal}_{question}"
            cls.summary = f"tells {_MEMBERS[question]} by {how}"
            cls.headline = Headline(
                f"{_MEMBERS[question].capitalize()} told from others",
                f"{_CANDIDATES[question]}, an attacker with {title} tells which is which in {{value}} of such "
                "pairs{interval}",
                "in",
                metric=AUC,
                question=f"membership of a {question}",
                signal=title,
            )
        super().__init_subclass__(**others)

    def judge(
        self, target: UnpairedTarget, statistics: Mapping[str, Values], headline: str, details: Mapping[str, object]
    ) -> Evidence:
        """The evidence of statistics (N,) of all candidates, those inside first; only the headline in full."""
        inside, outside, note = sides(target, self.question)
        member = np.arange(len(inside) + len(outside)) < len(inside)
        people = np.concatenate([inside.people, outside.people])
        first = self._judged(statistics[headline], member, people)
        if first.sides < 2:
            return self.not_applicable(
                Reason(ReasonCode.TOO_FEW_PEOPLE, "membership needs candidates of at least two people on each side")
            )
        scores: list[Score] = list(membership_scores(first, target.rng, f"{headline}; {note}"))
        for name, values in statistics.items():
            if name != headline:
                score = membership_scores(self._judged(values, member, people), target.rng, note)[0]
                scores.append(replace(score, metric=f"{AUC} ({name})"))
        caveat = self.question is Question.PICTURE and target.unseen is None
        facts = {
            "chance": first.chance,
            **({"caveat": _CAVEAT} if caveat else {}),
            "question": str(self.question),
            "people": first.sides,
            "inside": len(inside),
            "outside": len(outside),
            **details,
        }
        return Evidence(self.name, self.level, tuple(scores), details=facts)

    def _judged(self, values: Values, member: NDArray[np.bool_], people: NDArray[np.int64]) -> Judged:
        judged = Judged(values, member, people)
        return judged.by_person() if self.question is Question.PERSON else judged


class GlobalThreshold(Membership):
    """One statistic of a signal and one threshold for all candidates: the baseline that LiRA must beat."""

    by: ClassVar[Signal]

    def __init_subclass__(cls, question: Question, by: Signal) -> None:
        cls.by, cls.level, cls.needs = by, by.level, by.needs[question] | _NEEDS[question]
        super().__init_subclass__(question, by.name, by.title, by.how[question])

    def run(self, target: UnpairedTarget) -> Evidence:
        """AUC, TPR at 1 % FPR and balanced accuracy of the statistic; AUC of the signal's other statistics."""
        parts = [
            self.by.statistics(target.release, side.pictures, target.recogniser)
            for side in sides(target, self.question)[:2]
        ]
        statistics = {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
        return self.judge(target, statistics, self.by.chosen[self.question], {"adversary holds": self.by.knows})


class PersonInSet(GlobalThreshold, question=Question.PERSON, by=SET):
    """People in whose pictures a recogniser sees somebody of the synthetic set."""


class PictureInSet(GlobalThreshold, question=Question.PICTURE, by=SET):
    """Pictures that lie nearer to the synthetic set than others of the same people."""

    def clean_bound(self, target: UnpairedTarget) -> float | None:
        """1, less half the share of other pictures that cannot be told from a training picture."""
        _, outside, _ = sides(target, self.question)
        far, _ = nearest(pixel_vectors(outside.pictures), pixel_vectors(target.members.pictures))
        return 1.0 - float((far[:, 0] == 0.0).mean()) / 2


class PersonInLabels(GlobalThreshold, question=Question.PERSON, by=LABELS):
    """People of whom a model of the soft labels is certain."""


class PictureInLabels(GlobalThreshold, question=Question.PICTURE, by=LABELS):
    """Pictures of which a model of the soft labels is certain."""


class PersonInStudent(GlobalThreshold, question=Question.PERSON, by=STUDENT):
    """People of whom the student is certain."""


class PictureInStudent(GlobalThreshold, question=Question.PICTURE, by=STUDENT):
    """Pictures of which the student is certain."""

    def clean_bound(self, target: UnpairedTarget) -> float | None:
        """Nine pairs of ten, where the student has memorised its training pictures."""
        return MEMORISED


class ShadowMembership(Membership):
    """LiRA with the in/out ratio (headline), LiRA offline and the uncalibrated threshold, on each signal there is.

    The headline's signal is the student, else the soft labels, else the synthetic set.
    """

    level = Level.L2

    def __init_subclass__(cls, question: Question) -> None:
        cls.needs = _NEEDS[question] | {UnpairedNeed.SHADOWS, UnpairedNeed.EXPERT}
        how = "a likelihood ratio against shadow models (LiRA)"
        super().__init_subclass__(question, "shadows", "shadow models", how)

    def run(self, target: UnpairedTarget) -> Evidence:
        """AUC, TPR at 1 % FPR and balanced accuracy of the headline; AUC of the others."""
        shadows = given(target.shadows)
        inside, outside, _ = sides(target, self.question)
        pictures = [RememberedPictures(part) for part in (inside.pictures, outside.pictures, shadows.public)]
        statistics: dict[str, Values] = {}
        for signal in _signals(target, shadows):
            rows = [
                [
                    signal.statistics(release, part, target.recogniser)[signal.chosen[self.question]]
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


class PersonByShadows(ShadowMembership, question=Question.PERSON):
    """People about whom the release says more than shadows that do not know them."""


class PictureByShadows(ShadowMembership, question=Question.PICTURE):
    """Pictures about which the release says more than shadows that do not know them."""

    def clean_bound(self, target: UnpairedTarget) -> float | None:
        """Nine pairs of ten, where student and set are the training pictures."""
        return MEMORISED
