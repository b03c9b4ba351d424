"""The report as the command prints it: a table in at most a dozen lines, everything in words, or JSON."""

from __future__ import annotations

import json
from collections.abc import Iterator
from textwrap import shorten
from typing import Any

from veilkit.audit.report.model import faces_kept, faces_measured, report_of, utility, utility_text
from veilkit.audit.result import AuditResult, Surroundings
from veilkit.audit.verdicts.remedies import needed
from veilkit.audit.verdicts.verdict import ORDER, Grade, LevelVerdict, Rate
from veilkit.audit.verdicts.wording import percent
from veilkit.display import counted
from veilkit.types import Score

_WIDTH = 150  # of what is told in a sentence
_COLUMNS = ("level", "verdict", "worst attack", "measure", "finds (95 % interval)", "blind guessing")
FAILING = {"slight": Grade.SLIGHT, "serious": Grade.SERIOUS, "broken": Grade.BROKEN}
"""Words of `--fail-on`, and from which grade on it fails."""


def lines(result: AuditResult) -> Iterator[str]:
    """Everything in words: alarms and verdicts, then what is kept, then what proves nothing."""
    report = report_of(result)
    for alarm in result.alarms:
        yield f"ALARM ({alarm.name}): {alarm.text}"
    for verdict in report.verdicts:
        grade = f"{verdict.grade.upper()}. " if verdict.grade.graded else ""  # else the text begins with it
        yield f"{verdict.level} ({verdict.name}): {grade}{verdict.sentences}"
    if report.surroundings:
        yield f"By the surroundings, not the face: {report.surroundings}"
    for row in report.proven:
        if not row.repeated:
            yield f"{row.finding.role.value}: {row.finding.text}"
    if report.needed:
        yield f"For more verdicts: {report.needed}."
    for row in report.unproven:
        yield f"{row.finding.role.value} (INVALID: {'; '.join(row.finding.invalid)}): {row.finding.text}"
    for each in result.unmeasured:
        yield f"Not measured: {each.what}: {each.why}"
    for note in result.notes:
        yield f"Note: {note}"


def short(result: AuditResult) -> Iterator[str]:
    """At most ten lines: alarms, who judged what, a line for each level with the worst first, and what is kept."""
    if result.alarms:
        first, *others = result.alarms
        yield shorten(f"ALARM ({first.name}): {first.text}", _WIDTH, placeholder=" ...")
        if others:
            yield shorten(f"ALARMS, too: {', '.join(each.name for each in others)}", _WIDTH, placeholder=" ...")
    yield _judged(result)
    yield from _table(worst_first(result))
    if result.surroundings is not None:
        yield _apart(result.surroundings)
    yield _kept(result)
    if more := needed(result.verdicts):
        yield shorten(f"For more verdicts: {more}", _WIDTH, placeholder=" ... (--verbose)")


def worst_first(result: AuditResult) -> list[LevelVerdict]:
    """The verdicts, the worst grade first; of one grade that of the attacker who knows least."""
    return sorted(result.verdicts, key=lambda each: ORDER.index(each.grade))


def fails(result: AuditResult, word: str) -> bool:
    """Whether a leak is as bad as the word says, or worse. An alarm fails as well, and so does no verdict at all."""
    grades = [each.grade for each in result.verdicts]
    bad = any(each.leak and ORDER.index(each) <= ORDER.index(FAILING[word]) for each in grades)
    return bad or bool(result.alarms) or not any(each.graded for each in grades)


def as_json(result: AuditResult) -> dict[str, Any]:
    """The verdicts for a program; audit.json holds everything."""
    use = utility(result)
    return {
        "format": "veilkit-verdicts-1",
        "veilkit": result.veilkit,
        "release": result.protected.name,
        "pictures": result.pictures,
        "people": result.people,
        "judge": {"name": result.judge.name, "finds in originals": _value(_found_in_originals(result))},
        "expert": {
            "name": result.expert.name,
            "finds": _value(use.score if use else None),
            "finds in originals": _value(use.originals if use else None),
        },
        "judged by": result.seen,
        "faces": {each.score.metric: each.score.value for each in faces_measured(result)},
        "surroundings": None
        if result.surroundings is None
        else {
            "judge": result.surroundings.judge.name,
            "finds in originals": _value(result.surroundings.clean),
            **_level_values(result.surroundings.verdict),
        },
        "levels": [_level_values(each) for each in worst_first(result)],
        "alarms": [{"name": each.name, "text": each.text} for each in result.alarms],
        "not measured": [{"what": each.what, "why": each.why} for each in result.unmeasured],
    }


def as_json_text(values: dict[str, Any]) -> str:
    """What `--json` prints."""
    return json.dumps(values, indent=2, allow_nan=False)


def _judged(result: AuditResult) -> str:
    who = "people not known" if result.people is None else counted(result.people, "person", "people")
    of_what = f"{result.protected.name}: {counted(result.pictures, 'picture', 'pictures')}, {who}"
    clean = _found_in_originals(result)
    finds = "" if clean is None else f", finds {percent(clean.value)} of the originals"
    by = "by faces, judge" if result.seen == "faces" else "judge"
    return f"{of_what}; {by} {result.judge.name}{finds}"


def _found_in_originals(result: AuditResult) -> Score | None:
    return result.score("judge", "raw-raw", "rank-1")


def _table(verdicts: list[LevelVerdict]) -> Iterator[str]:
    rows = [(str(each.level), _grade(each.grade), *_worst(each)) for each in verdicts]
    full = [row for row in (_COLUMNS, *rows) if len(row) == len(_COLUMNS)]
    widths = [max(map(len, cells)) for cells in zip(*full, strict=True)]
    widths[1] = max(widths[1], *(len(row[1]) for row in rows))
    for row in (_COLUMNS, *rows):
        yield "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=False)).rstrip()


def _grade(grade: Grade) -> str:
    return grade.upper() if grade is Grade.BROKEN else str(grade)


def _worst(verdict: LevelVerdict) -> tuple[str, ...]:
    """The cells of the attack that decided, or one cell that says why there is none."""
    worst = verdict.worst
    if worst is None:
        return (shorten(verdict.text.partition(": ")[2], _WIDTH - 40, placeholder=" ..."),)
    decisive = worst.decisive
    least = "≥ " if worst.invalid else ""
    blind = "not known" if decisive.chance is None else percent(decisive.chance)
    return worst.attack, decisive.metric, f"{least}{percent(decisive.value)}{_span(decisive)}", blind


def _span(rate: Rate) -> str:
    return "" if rate.low is None or rate.high is None else f" ({100 * rate.low:.1f}–{100 * rate.high:.1f})"


def _apart(surroundings: Surroundings) -> str:
    """What is found without the faces, in one line."""
    verdict, worst = surroundings.verdict, surroundings.verdict.worst
    by = f"By the surroundings, not the face (judge {surroundings.judge.name}): {_grade(verdict.grade)}"
    if worst is None:
        return by
    name, measure, finds, blind = _worst(verdict)
    return f"{by}, {name}, {measure} {finds}, blind guessing {blind}"


def _kept(result: AuditResult) -> str:
    use = utility(result)
    if use is None and result.seen == "faces":
        return f"Kept: {', '.join(faces_kept(result))}"
    if use is None:
        return shorten(f"Kept: {utility_text(result, use)}", _WIDTH, placeholder=" ...")
    originals = "" if use.originals is None else f", {percent(use.originals.value)} among the originals"
    faces = "".join(f"{text}; " for text in faces_kept(result))
    return f"Kept: {faces}the expert {result.expert.name} finds {percent(use.score.value)} of the people{originals}"


def _level_values(verdict: LevelVerdict) -> dict[str, Any]:
    values: dict[str, Any] = {"level": str(verdict.level), "attacker": verdict.name, "grade": str(verdict.grade)}
    if (worst := verdict.worst) is not None:
        rate = worst.decisive
        values |= {"attack": worst.attack, "metric": rate.metric, "value": rate.value, "low": rate.low,
                   "high": rate.high, "chance": rate.chance, "at least": bool(worst.invalid)}  # fmt: skip
    return {**values, "text": verdict.sentences}


def _value(score: Score | None) -> float | None:
    return None if score is None else score.value
