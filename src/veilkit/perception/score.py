"""Answers and a key to scores.

Participants and the people in the pictures are both a sample, so intervals come from draws of both. Where every
answer is right, or every one wrong, draws would all be alike, and the exact interval of that many people is given.
"""

from __future__ import annotations

from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from veilkit.display import counted
from veilkit.errors import DataError
from veilkit.metrics import (
    Interval,
    category_counts,
    clopper_pearson,
    cohen_kappa,
    crossed_weights,
    fleiss_kappa,
    free_marginal_kappa,
    percentile_interval,
    sensitivity,
)
from veilkit.perception.answers import Sheet, read_answers
from veilkit.perception.key import StudyKey, read_study_key
from veilkit.perception.plan import KINDS, Kind
from veilkit.perception.scores import Agreement, Detection, Dropped, Row, StudyScores
from veilkit.rng import Randomness

_FEW = 5  # participants, below which their draws say little


def score_study(files: Sequence[str | Path], key: str | Path, *, draw_seed: int = 0) -> StudyScores:
    """Score files of answers by the study's private key. draw_seed: of the bootstrap."""
    known = read_study_key(Path(key))
    sheets = read_answers([Path(file) for file in files], known)
    kept, dropped, rule = _attentive(sheets, known)
    rows = []
    for kind in KINDS:
        if answers := tabulate(kept, known, kind, Randomness.from_seed(draw_seed).child("study", kind).numpy()):
            rows += _rows(answers, known, kind)
    notes = ["a low accuracy says what these participants saw, not that nobody could see more"]
    if len(kept) < _FEW:
        notes.append(
            f"{counted(len(kept), 'participant', 'participants')}: the intervals say little of other participants; "
            f"take at least {_FEW}"
        )
    if not any(condition.control for condition in known.conditions):
        notes.append("no control: nothing tells whether these participants recognise anybody without protection")
    participants = tuple(sheet.participant for sheet in kept)
    return StudyScores(known.study, participants, dropped, rule, tuple(rows), tuple(notes))


def _attentive(sheets: list[Sheet], key: StudyKey) -> tuple[list[Sheet], tuple[Dropped, ...], str]:
    """Who passed the attention checks, by a rule that stands in the key."""
    checks = {code: question for code, question in key.questions.items() if question.is_check}
    if not checks:
        return sheets, (), "no attention checks: everybody counts"
    rule = f"participants count with at least {key.checks_needed} of {len(checks)} attention checks right"
    right = {
        sheet.participant: sum(sheet.given[code].answer == checks[code].answer for code in checks) for sheet in sheets
    }
    kept = [sheet for sheet in sheets if right[sheet.participant] >= key.checks_needed]
    dropped = tuple(
        Dropped(sheet.participant, right[sheet.participant], len(checks)) for sheet in sheets if sheet not in kept
    )
    if not kept:
        raise DataError(
            f"nothing can be scored: of {counted(len(sheets), 'participant', 'participants')} none passed ({rule})"
        )
    return kept, dropped, rule


def _rows(answers: Table, key: StudyKey, kind: Kind) -> list[Row]:
    parts = {}
    for condition in key.conditions:
        asked = {c: key.questions[c] for c in answers.codes if key.questions[c].condition == condition.name}
        if asked:
            parts[condition] = (answers.of(asked.keys()), asked)
    control = next((part for condition, (part, _) in parts.items() if condition.control), None)
    chance = 0.5 if kind == "pair" else 1.0 / key.choices
    gate: tuple[str, ...] = ()
    if control is not None and (known := accuracy(control)[0]).low <= chance:
        gate = (
            "on unprotected pictures, too, these participants are not told from chance "
            f"({100 * known.value:.1f} % right, at least {100 * known.low:.1f} % for sure)",
        )
    rows = []
    for condition, (part, asked) in parts.items():
        value, how = accuracy(part)
        rows.append(
            Row(
                condition=condition.name,
                method=condition.method,
                control=condition.control,
                kind=kind,
                questions=len(asked),
                people=len(np.unique(part.person)),
                answers=len(part.given),
                accuracy=value,
                interval_by=how,
                chance=chance,
                detection=detection(part) if kind == "pair" else None,
                agreement=agreement(part, kind, key.choices),
                median_seconds=float(np.median(part.ms)) / 1000.0,
                minus_control=None if control is None or condition.control else difference(part, control),
                own=sum(question.own for question in asked.values()),
                invalid=gate,
            )
        )
    return rows


@dataclass(frozen=True, slots=True, eq=False)
class Table:
    """Answers to one kind of question, participant by participant: arrays of one length, and weights (draws, N)."""

    codes: tuple[str, ...]
    participant: NDArray[np.int64]
    question: NDArray[np.int64]
    person: NDArray[np.int64]
    given: NDArray[np.int64]
    truth: NDArray[np.int64]
    ms: NDArray[np.int64]
    weights: NDArray[np.float64]

    @property
    def right(self) -> NDArray[np.bool_]:
        """Which answers are right."""
        return np.equal(self.given, self.truth)

    def of(self, codes: AbstractSet[str]) -> Table:
        """The part of these questions."""
        kept = np.array([code in codes for code in self.codes])[self.question]
        arrays = {
            name: getattr(self, name)[kept] for name in ("participant", "question", "person", "given", "truth", "ms")
        }
        return replace(self, **arrays, weights=self.weights[:, kept])


def tabulate(sheets: Sequence[Sheet], key: StudyKey, kind: Kind, generator: np.random.Generator) -> Table | None:
    """The answers to all questions of a kind, attention checks excepted; None where there are none."""
    asked = {code: q for code, q in key.questions.items() if q.kind == kind and not q.is_check}
    if not asked:
        return None
    codes = tuple(asked)
    answers = [(n, place, sheet.given[code]) for n, sheet in enumerate(sheets) for place, code in enumerate(codes)]
    questions = [asked[codes[place]] for _, place, _ in answers]
    participant = np.array([n for n, _, _ in answers])
    person = np.array([question.person for question in questions])
    return Table(
        codes=codes,
        participant=participant,
        question=np.array([place for _, place, _ in answers]),
        person=person,
        given=np.array([q.options.index(a.answer) for q, (_, _, a) in zip(questions, answers, strict=True)]),
        truth=np.array([question.options.index(question.answer) for question in questions]),
        ms=np.array([answer.ms for _, _, answer in answers]),
        weights=crossed_weights(participant, person, generator=generator),
    )


def _means(part: Table) -> NDArray[np.float64]:
    """The accuracy in each draw; NaN in the rare one that took none of these people."""
    total = part.weights.sum(axis=1)
    with np.errstate(invalid="ignore"):
        return np.asarray((part.weights @ part.right) / total)


def accuracy(part: Table) -> tuple[Interval, str]:
    """The share of right answers with its interval, and how that was found."""
    right, count = int(part.right.sum()), len(part.right)
    people, participants = len(np.unique(part.person)), len(np.unique(part.participant))
    if right in (0, count):
        exact = clopper_pearson(people if right else 0, people)
        return exact, f"exact (Clopper-Pearson) over {people} people, as all answers are alike"
    if participants == 1 and people == count:
        return clopper_pearson(right, count), f"exact (Clopper-Pearson) over {count} questions of one participant"
    draws = _means(part)
    how = f"1,000 draws of {participants} participants and {people} people"
    if participants == 1:
        how = f"1,000 draws of {people} people, one participant"
    return percentile_interval(right / count, draws[np.isfinite(draws)]), how


def difference(part: Table, control: Table) -> Interval:
    """Accuracy less the control's, in the same draws; between the ends of both intervals where draws are alike."""
    value = float(part.right.mean() - control.right.mean())
    draws = _means(part) - _means(control)
    draws = draws[np.isfinite(draws)]
    if draws.std():
        return percentile_interval(value, draws)
    one, other = accuracy(part)[0], accuracy(control)[0]
    return Interval(value, one.low - other.high, one.high - other.low, one.confidence)


def detection(part: Table) -> Detection | None:
    """How well the same person was told from others; None where all pairs are of one sort."""
    said = part.given == 0  # SAME stands first among the options of a pair
    same = part.truth == 0
    if same.all() or not same.any():
        return None
    ones = np.ones((1, len(said)))
    value, draws = (
        sensitivity(w @ (said & same), w @ same, w @ (said & ~same), w @ ~same) for w in (ones, part.weights)
    )
    interval = percentile_interval(float(value.d_prime[0]), draws.d_prime)
    return Detection(float(said[same].mean()), float(said[~same].mean()), interval, float(value.criterion[0]))


def agreement(part: Table, kind: Kind, choices: int) -> Agreement:
    """How far participants agree with each other, right or wrong."""
    raters = len(np.unique(part.participant))
    if raters < 2:
        return Agreement("none", None, "one participant agrees with nobody")
    ratings = part.given.reshape(raters, -1).T
    alike = "all participants give one and the same answer to everything"
    if kind == "choice":
        return Agreement("free-marginal kappa", free_marginal_kappa(category_counts(ratings, choices)))
    if raters == 2:
        kappa = cohen_kappa(ratings[:, 0], ratings[:, 1])
        return Agreement("Cohen's kappa", kappa, alike if kappa is None else "")
    kappa = fleiss_kappa(category_counts(ratings, 2))
    return Agreement("Fleiss' kappa", kappa, alike if kappa is None else "")
