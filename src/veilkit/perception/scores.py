"""What a study found, as values: one row for each condition and kind of question."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass

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
