"""What a study found: one row for each condition and kind of question, as values, as JSON and as a table."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass

from veilkit.display import counted
from veilkit.metrics import Interval
from veilkit.perception.plan import Kind


@dataclass(frozen=True, slots=True)
class Agreement:
    """How far participants agree with each other. kappa is None where it is not defined, for the reason `why`."""

    name: str
    kappa: float | None
    why: str = ""


@dataclass(frozen=True, slots=True)
class Detection:
    """Pairs only. hits: "same" said of the same person; false_alarms: of others. criterion: see `sensitivity`."""

    hits: float
    false_alarms: float
    d_prime: Interval
    criterion: float


@dataclass(frozen=True, slots=True)
class Row:
    """One condition asked in one way.

    answers: participants times questions. interval_by: how the accuracy's interval was found. minus_control: accuracy
    less that on unprotected pictures. own: questions whose right original is the picture's very own. invalid: reasons
    why a low accuracy would prove nothing.
    """

    condition: str
    method: str | None
    control: bool
    kind: Kind
    questions: int
    people: int
    answers: int
    accuracy: Interval
    interval_by: str
    chance: float
    detection: Detection | None
    agreement: Agreement
    median_seconds: float
    minus_control: Interval | None
    own: int
    invalid: tuple[str, ...]

    @property
    def against_chance(self) -> str:
        """The verdict in words; no study can prove that nobody would recognise anybody."""
        if self.accuracy.low > self.chance:
            return "recognised"
        return "invalid" if self.invalid else "worse than chance" if self.accuracy.high < self.chance else "not told"


@dataclass(frozen=True, slots=True)
class Dropped:
    """A participant who does not count, and how many attention checks were right."""

    participant: str
    right: int
    checks: int


@dataclass(frozen=True, slots=True)
class StudyScores:
    """The scores of a study. rule: who counts. notes: what a reader must be told."""

    study: str
    participants: tuple[str, ...]
    dropped: tuple[Dropped, ...]
    rule: str
    rows: tuple[Row, ...]
    notes: tuple[str, ...]

    def to_json(self) -> str:
        """Everything, with each row's verdict."""
        table = asdict(self)
        for row, known in zip(table["rows"], self.rows, strict=True):
            row["against_chance"] = known.against_chance
        return json.dumps(table, indent=2) + "\n"


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
    head = [f"Study {scores.study}: {count}, {out} {'does' if out == 1 else 'do'} not."]
    head.append(f"Rule: {scores.rule}.")
    head += [f"Left out: {each.participant} ({each.right} of {each.checks} checks right)." for each in scores.dropped]
    lines = [*head, "", *lines, ""]
    names = {row: f"{row.condition}, {_KINDS[row.kind]}" for row in scores.rows}
    for row, name in names.items():
        lines += [f"INVALID: {name}: {each}; a low number proves nothing" for each in row.invalid]
    for how in dict.fromkeys(row.interval_by for row in scores.rows):
        where = [f"{row.condition} ({_KINDS[row.kind]})" for row in scores.rows if row.interval_by == how]
        lines.append(f"Interval: {how}: {'all' if len(where) == len(scores.rows) else ', '.join(where)}")
    for row, name in names.items():
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
