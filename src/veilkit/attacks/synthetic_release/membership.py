"""Membership inference: was this person, or this very picture, in the training set?

The two questions differ. *Person*: other pictures of training people (none of them trained on) against pictures of
people outside; each person is one candidate. *Picture*: pictures trained on against other pictures of the same
people, so that knowing the person does not help; where there are none, against pictures of other people, which is
easier, and said. The attacks of this file use one threshold for all candidates; `shadow_membership` calibrates each.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from enum import StrEnum
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from veilkit.attacks.headline import Headline
from veilkit.attacks.membership_scores import AUC, Judged, membership_scores
from veilkit.attacks.synthetic_release.base import LabelledPictures, UnpairedAttack, UnpairedNeed, UnpairedTarget
from veilkit.attacks.synthetic_release.nearest import nearest, pixel_vectors
from veilkit.attacks.synthetic_release.signals import LABELS, SET, STUDENT, Signal, Values
from veilkit.types import Evidence, Level, Reason, ReasonCode, Score


class Question(StrEnum):
    """What is asked about a candidate."""

    PERSON = "person"
    PICTURE = "picture"


NEEDS = {
    Question.PERSON: frozenset({UnpairedNeed.UNSEEN, UnpairedNeed.HELD_OUT}),
    Question.PICTURE: frozenset({UnpairedNeed.NON_MEMBERS}),
}
_CANDIDATES = {
    Question.PERSON: ("Training people told from others", "Of a training person and somebody who was not trained on"),
    Question.PICTURE: ("Training pictures told from others", "Of a picture that was trained on and one that was not"),
}
_CAVEAT = "The others are pictures of other people, so that it may be the person who was found."
MEMORISED = 0.9  # AUC that a model which memorises its training pictures must be caught with


def sides(target: UnpairedTarget, question: Question) -> tuple[LabelledPictures, LabelledPictures, str]:
    """Candidates inside and outside the training set, and what is to be said of them."""
    if question is Question.PERSON:
        assert target.unseen is not None
        assert target.held_out is not None
        return target.unseen, target.held_out, "by pictures that were not trained on"
    if target.unseen is not None:
        return target.members, target.unseen, "against other pictures of the same people"
    assert target.held_out is not None
    return target.members, target.held_out, "against other people: what is found may be the person, not the picture"


def membership_headline(question: Question, signal: str) -> Headline:
    """How membership by one signal is told."""
    title, candidates = _CANDIDATES[question]
    sentence = f"{candidates}, an attacker with {signal} tells which is which in {{value}} of such pairs{{interval}}"
    return Headline(title, sentence, "in", metric=AUC, question=f"membership of a {question}", signal=signal)


class Membership(UnpairedAttack):
    """Judges candidates by statistics that are larger for members. A subclass gives them."""

    question: ClassVar[Question]

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
    """One statistic and one threshold for all candidates: the baseline that LiRA must beat."""

    signal: ClassVar[Signal]
    statistic: ClassVar[str]

    def run(self, target: UnpairedTarget) -> Evidence:
        """AUC, TPR at 1 % FPR and balanced accuracy of the statistic; AUC of the signal's other statistics."""
        parts = [
            self.signal.statistics(target.release, side.pictures, target.recogniser)
            for side in sides(target, self.question)[:2]
        ]
        statistics = {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
        return self.judge(target, statistics, self.statistic, {"adversary holds": self.signal.knows})


class PersonInSet(GlobalThreshold):
    """People in whose pictures a recogniser sees somebody of the synthetic set."""

    name = "membership_set_person"
    summary = "tells training people by how near other pictures of them come to the synthetic pictures"
    level = Level.L0
    headline = membership_headline(Question.PERSON, "the synthetic pictures alone")
    question, signal, statistic = Question.PERSON, SET, "recogniser"
    needs = SET.needs | NEEDS[Question.PERSON] | {UnpairedNeed.EXPERT}


class PictureInSet(GlobalThreshold):
    """Pictures that lie nearer to the synthetic set than others of the same people."""

    name = "membership_set_picture"
    summary = "tells training pictures by how near they come to the synthetic pictures"
    level = Level.L0
    headline = membership_headline(Question.PICTURE, "the synthetic pictures alone")
    question, signal, statistic = Question.PICTURE, SET, "pixels"
    needs = SET.needs | NEEDS[Question.PICTURE]

    def clean_bound(self, target: UnpairedTarget) -> float | None:
        """1, less half the share of other pictures that cannot be told from a training picture."""
        _, outside, _ = sides(target, self.question)
        far, _ = nearest(pixel_vectors(outside.pictures), pixel_vectors(target.members.pictures))
        return 1.0 - float((far[:, 0] == 0.0).mean()) / 2


class PersonInLabels(GlobalThreshold):
    """People of whom a model of the soft labels is certain."""

    name = "membership_labels_person"
    summary = "tells training people by the certainty of a model fitted to the soft labels"
    level = Level.L0
    headline = membership_headline(Question.PERSON, "the soft labels")
    question, signal, statistic = Question.PERSON, LABELS, "confidence"
    needs = LABELS.needs | NEEDS[Question.PERSON]


class PictureInLabels(GlobalThreshold):
    """Pictures of which a model of the soft labels is certain."""

    name = "membership_labels_picture"
    summary = "tells training pictures by the certainty of a model fitted to the soft labels"
    level = Level.L0
    headline = membership_headline(Question.PICTURE, "the soft labels")
    question, signal, statistic = Question.PICTURE, LABELS, "confidence"
    needs = LABELS.needs | NEEDS[Question.PICTURE]


class PersonInStudent(GlobalThreshold):
    """People of whom the student is certain."""

    name = "membership_student_person"
    summary = "tells training people by the certainty of a student trained on the release"
    level = Level.L2
    headline = membership_headline(Question.PERSON, "a student of the release")
    question, signal, statistic = Question.PERSON, STUDENT, "confidence"
    needs = STUDENT.needs | NEEDS[Question.PERSON]


class PictureInStudent(GlobalThreshold):
    """Pictures of which the student is certain."""

    name = "membership_student_picture"
    summary = "tells training pictures by the certainty of a student trained on the release"
    level = Level.L2
    headline = membership_headline(Question.PICTURE, "a student of the release")
    question, signal, statistic = Question.PICTURE, STUDENT, "confidence"
    needs = STUDENT.needs | NEEDS[Question.PICTURE]

    def clean_bound(self, target: UnpairedTarget) -> float | None:
        """Nine pairs of ten, where the student has memorised its training pictures."""
        return MEMORISED
