"""Answers and a key to scores."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from veilkit.errors import DataError
from veilkit.metrics import Interval
from veilkit.perception.answers import Sheet, read_answers
from veilkit.perception.key import StudyKey, read_study_key
from veilkit.perception.measures import Table, accuracy, agreement, detection, difference, tabulate
from veilkit.perception.plan import KINDS, Kind
from veilkit.perception.scores import Dropped, Row, StudyScores
from veilkit.rng import Randomness
from veilkit.text import counted

_KINDS = {"pair": "same or not", "choice": "which of these"}
_VERDICTS = {
    "recognised": "recognised, above chance",
    "not told": "not told from chance",
    "worse than chance": "below chance",
    "invalid": "INVALID",
}
_HEAD = (
    "shown",
    "question",
    "accuracy (95 %)",
    "chance",
    "found",
    "d' (95 %)",
    "minus control",
    "agreement",
    "median",
)


def study_table(scores: StudyScores) -> str:
    """Tables and notes."""
    rows = [_HEAD, *(_cells(row) for row in scores.rows)]
    widths = [max(len(row[place]) for row in rows) for place in range(len(_HEAD))]
    lines = [_line(_HEAD, widths), "|" + "|".join("-" * (width + 2) for width in widths) + "|"]
    lines += [_line(row, widths) for row in rows[1:]]
    count = counted(len(scores.participants), "participant counts", "participants count")
    out = len(scores.dropped)
    told = [f"Study {scores.study}: {count}, {out} {'does' if out == 1 else 'do'} not."]
    told.append(f"Rule: {scores.rule}.")
    told += [f"Left out: {each.participant} ({each.right} of {each.checks} checks right)." for each in scores.dropped]
    lines = [*told, "", *lines, ""]
    for row in scores.rows:
        name = f"{row.condition}, {_KINDS[row.kind]}"
        lines += [f"INVALID: {name}: {each}; a low number proves nothing" for each in row.invalid]
    for how in dict.fromkeys(row.interval_by for row in scores.rows):
        where = [f"{row.condition} ({_KINDS[row.kind]})" for row in scores.rows if row.interval_by == how]
        lines.append(f"Interval: {how}: {'all' if len(where) == len(scores.rows) else ', '.join(where)}")
    for row in scores.rows:
        name = f"{row.condition}, {_KINDS[row.kind]}"
        if row.agreement.why:
            lines.append(f"Agreement: {name}: not defined, as {row.agreement.why}")
        if row.own:
            lines.append(
                f"Note: {name}: {row.own} of {row.questions} questions showed the picture's very own original"
            )
    return "\n".join([*lines, *(f"Note: {note}" for note in scores.notes)]) + "\n"


def _cells(row: Row) -> tuple[str, ...]:
    method = f" [{row.method}]" if row.method and row.method != row.condition else ""
    agreement = "-" if row.agreement.kappa is None else f"{row.agreement.kappa:.2f} ({row.agreement.name})"
    detection = "-" if row.detection is None else _plain(row.detection.d_prime)
    return (
        f"{row.condition}{method}{' (control)' if row.control else ''}",
        _KINDS[row.kind],
        f"{100 * row.accuracy.value:.1f} % ({100 * row.accuracy.low:.1f} to {100 * row.accuracy.high:.1f})",
        f"{100 * row.chance:.0f} %",
        _VERDICTS[row.against_chance],
        detection,
        "-" if row.minus_control is None else _points(row.minus_control),
        agreement,
        f"{row.median_seconds:.1f} s",
    )


def _plain(interval: Interval) -> str:
    return f"{interval.value:.2f} ({interval.low:.2f} to {interval.high:.2f})"


def _points(interval: Interval) -> str:
    return f"{100 * interval.value:+.1f} ({100 * interval.low:+.1f} to {100 * interval.high:+.1f})"


def _line(cells: tuple[str, ...], widths: list[int]) -> str:
    texts = (cell.replace("|", "/").ljust(width) for cell, width in zip(cells, widths, strict=True))
    return f"| {' | '.join(texts)} |"


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
