"""What an audit found, as it stands in audit.json."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from pydantic import TypeAdapter, ValidationError

from veilkit.audit.verdicts.verdict import LevelVerdict
from veilkit.display import Table, counted, html_table
from veilkit.errors import DataError
from veilkit.types import Evidence, Role, Score

By = Literal["expert", "judge", "images"]
SETTINGS = ("raw-raw", "raw-protected", "protected-raw", "protected-protected")
"""Query, then gallery."""
DIFFERENCE = "protected minus raw"
"""Setting of a paired difference: the same queries, protected-protected minus raw-raw."""
SAME_CLASS, OTHER_CLASS = "synthetic to an original of its class", "synthetic to an original of another class"
"""Settings of the pictures of a synthetic release, which have no originals of their own."""


@dataclass(frozen=True, slots=True)
class Input:
    """A folder: its name (no path), the pictures used, a hash of their hashes, and files that could not be read."""

    name: str
    pictures: int
    sha256: str
    unreadable: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Recogniser:
    """An expert that took part. flip: whether it averaged each picture's features with its mirror image's."""

    name: str
    sha256: str
    dim: int
    licence: str
    source: str
    flip: bool = False


@dataclass(frozen=True, slots=True)
class _Measured:
    """By whom something was measured, and in which of SETTINGS."""

    by: By
    setting: str


@dataclass(frozen=True, slots=True)
class Measurement(_Measured):
    """A score, by whom it was measured and in which setting.

    setting: one of SETTINGS, DIFFERENCE, or what the pictures were compared with. chance: what blind guessing scores,
    where that is known. reference: the originals alone, which have no direction.
    """

    score: Score
    chance: float | None = None
    reference: bool = False


@dataclass(frozen=True, slots=True)
class Curve(_Measured):
    """CMC: the share of searches with a right answer among the first 1, 2, ... answers."""

    rates: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class Histogram(_Measured):
    """Cosine similarities of pairs of pictures: shares (summing to 1) for the same and for different people."""

    edges: tuple[float, ...]
    same: tuple[float, ...]
    different: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class Roc(_Measured):
    """Pairs of pictures told apart by a threshold on their similarity: the share of pairs of one person that is
    accepted (`tpr`) where at most `fpr` of the pairs of different people are. auc: the area under the whole curve.
    """

    fpr: tuple[float, ...]
    tpr: tuple[float, ...]
    auc: float
    eer: float
    pairs: tuple[int, int]


@dataclass(frozen=True, slots=True)
class Tally(_Measured):
    """How many of each person's searches found a right answer first, in the order of `Tallies.searches`."""

    hits: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Tallies:
    """Searches person by person, so that two audits of the same originals can be compared search by search.

    order: a hash of the originals, who is in them and who was searched for, in their order; only tallies of one order
    belong together. searches: of each person, who are numbered and not named.
    """

    order: str
    searches: tuple[int, ...]
    tallies: tuple[Tally, ...]


@dataclass(frozen=True, slots=True)
class Unmeasured:
    """Something that could not be measured, and why."""

    what: str
    why: str


@dataclass(frozen=True, slots=True)
class Alarm:
    """Something that is wrong with a release or with the audit itself, whatever the scores say.

    name: one of `audit.alarms.ALARMS`. text: what was found, in plain language, without names of originals.
    """

    name: str
    text: str


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that a reader must know, in plain language.

    figure: the number as people read it. value, low, high: the same on [0, 1], and `marks` to compare it with.
    scale: of value and marks. invalid: why nothing may be concluded from it.
    """

    title: str
    role: Role
    figure: str
    text: str
    value: float
    low: float | None = None
    high: float | None = None
    marks: Mapping[str, float] = field(default_factory=dict)
    scale: Literal["rate", "similarity"] = "rate"
    invalid: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Surroundings:
    """Who is found by everything but the face: never part of what is said of faces.

    verdict: of attackers who know nothing of the protection. clean: what the judge finds in the originals' own.
    """

    judge: Recogniser
    clean: Score | None
    verdict: LevelVerdict


@dataclass(frozen=True, slots=True)
class AuditResult:
    """Everything an audit found. No names of originals and no paths are in it."""

    veilkit: str
    versions: Mapping[str, str]
    config: Mapping[str, Any]
    originals: Input
    protected: Input
    release: Mapping[str, Any] | None
    paired_by: str
    pictures: int
    people: int | None
    cameras_used: bool
    queries: int
    gallery: int
    expert: Recogniser
    judge: Recogniser
    independent: bool
    summary: tuple[Finding, ...]
    measurements: tuple[Measurement, ...]
    attacks: tuple[Evidence, ...]
    curves: tuple[Curve, ...]
    histograms: tuple[Histogram, ...]
    unmeasured: tuple[Unmeasured, ...]
    notes: tuple[str, ...]
    verdicts: tuple[LevelVerdict, ...] = ()
    rocs: tuple[Roc, ...] = ()
    tallies: Tallies | None = None
    alarms: tuple[Alarm, ...] = ()
    seen: Literal["pictures", "faces"] = "pictures"
    surroundings: Surroundings | None = None
    format: Literal["veilkit-audit-2"] = "veilkit-audit-2"

    @property
    def table(self) -> Table:
        """The verdict on each level of attacker, worst attack first: what `repr` and notebooks show."""
        rows = []
        for each in self.verdicts:
            worst = "" if each.worst is None else each.worst.attack
            rows.append((str(each.level), f"{each.name}: {each.knows}", str(each.grade), worst, each.text))
        return Table("level", ("level", "attacker", "verdict", "worst attack", "why"), rows)

    def __repr__(self) -> str:
        lines = [f"  {each.level}  {each.grade}{_by(each)}" for each in self.verdicts]
        lines += [f"  ALARM: {alarm.name}" for alarm in self.alarms]
        return "\n".join([f"AuditResult: {self._of_what}", *lines])

    def _repr_html_(self) -> str:
        alarms = [(alarm.name, alarm.text) for alarm in self.alarms]
        shown = html_table(("alarm", "what was found"), alarms) if alarms else ""
        return shown + html_table(self.table.columns, self.table.rows, caption=self._of_what)

    @property
    def _of_what(self) -> str:
        who = "people not known" if self.people is None else counted(self.people, "person", "people")
        return f"{self.protected.name}, {counted(self.pictures, 'picture', 'pictures')}, {who}"

    @property
    def not_applicable(self) -> dict[str, str]:
        """Attacks that do not apply to the release, and why."""
        return {evidence.attack: evidence.why_missing for evidence in self.attacks if not evidence.applicable}

    @property
    def invalid(self) -> dict[str, tuple[str, ...]]:
        """Attacks whose gates failed, and why: their scores prove nothing."""
        return {evidence.attack: tuple(map(str, evidence.invalid)) for evidence in self.attacks if evidence.invalid}

    def score(self, by: By, setting: str, metric: str) -> Score | None:
        """One measured score, or None where it could not be measured."""
        for each in self.measurements:
            if (each.by, each.setting, each.score.metric) == (by, setting, metric):
                return each.score
        return None

    def evidence(self, attack: str) -> Evidence | None:
        """What an attack found, or None where it was not tried."""
        return next((evidence for evidence in self.attacks if evidence.attack == attack), None)

    def to_json(self) -> str:
        """audit.json; `read_audit` reads it back."""
        values = _RESULT.dump_python(self, mode="json")
        for each in values["attacks"]:
            each["applicable"] = not each["missing"]
        lists = {"not_applicable": self.not_applicable, "invalid": self.invalid}
        return json.dumps({"format": self.format, **values, **lists}, indent=2, allow_nan=False) + "\n"


def _by(verdict: LevelVerdict) -> str:
    return f" ({verdict.worst.attack})" if verdict.worst is not None and verdict.grade.leak else ""


_RESULT = TypeAdapter(AuditResult)


def read_audit(file: Path) -> AuditResult:
    """Read an audit.json."""
    try:
        return _RESULT.validate_json(file.read_bytes(), strict=False)
    except OSError as error:
        raise DataError(f"{file} cannot be read: {error.strerror}") from None
    except ValidationError as error:
        wrong = "1 wrong field" if error.error_count() == 1 else f"{error.error_count()} wrong fields"
        raise DataError(f"{file} is not an audit that this version reads ({wrong}): run it again") from None
