"""A row of the tables of all methods, as JSON values: what is kept, and what the attackers of each level got."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from veilkit.audit.cells.prepared import LEFT_OUT
from veilkit.audit.result import AuditResult
from veilkit.audit.verdicts.verdict import Grade, LevelVerdict, over_chance
from veilkit.audit.verdicts.wording import found
from veilkit.types import Evidence, Level, Score

Row = dict[str, Any]
AS_KEPT = "as kept"
"""In place of an attack: who sees the release searches in it as well as the authorised user does."""
_METRICS = ("rank-1", "mAP")


def audited_row(label: str, result: AuditResult, kept: Mapping[str, Any] | None = None) -> Row:
    """What an audit found. kept: what is kept, where the audit's own expert does not tell it."""
    if kept is None:
        kept = {
            "by": result.expert.name,
            **_scores(result, "protected-protected"),
            "originals": _scores(result, "raw-raw"),
        }
    return {
        "label": label,
        "kept": dict(kept),
        "levels": {str(each.level): _level(each) for each in result.verdicts},
        "judge": result.judge.name,
        "judge on originals": _interval(result.score("judge", "raw-raw", "rank-1")),
        "people": result.people,
        "pictures": result.pictures,
        "alarms": [alarm.name for alarm in result.alarms],
    }


def attacked_row(
    label: str, evidence: Sequence[Evidence], kept: Mapping[str, Any], open_to: Mapping[Level, str], **about: Any
) -> Row:
    """The same of attacks that no audit made. open_to: levels at which people are found as by the user, and why."""
    levels = {}
    for level in Level:
        tried = [each for each in evidence if each.level is level]
        got = [_headline(each) for each in tried if not each.invalid]
        if level in open_to:
            got.append({"attack": AS_KEPT, "metric": "rank-1", "value": kept["rank-1"], "chance": kept["chance"]})
        levels[str(level)] = {
            "found": max((each for each in got if each), key=_beyond_chance, default=None),
            "invalid": {each.attack: [str(reason) for reason in each.invalid] for each in tried if each.invalid},
            "not made": {each.attack: each.why_missing for each in tried if not each.applicable},
            "why": open_to.get(level, ""),
        }
    return {"label": label, "kept": dict(kept), "levels": levels, **about}


def missing_row(label: str, why: str) -> Row:
    """A method that was not run, and why."""
    return {"label": label, "not run": why}


def _headline(evidence: Evidence) -> Row | None:
    """What an attack is told by; None where it has no score, or nobody knows what chance would give."""
    scored = found(evidence)
    if scored is None or scored[1] is None:
        return None
    score, chance = scored
    return {"attack": evidence.attack, "metric": score.metric, "value": _interval(score), "chance": chance}


def _beyond_chance(row: Row) -> float:
    return over_chance(row["value"][0], row["chance"])


def _level(verdict: LevelVerdict) -> Row:
    """The worst of the attacks that passed their gates; those that failed them; those that were not made, and why."""
    worst = verdict.worst
    return {
        "found": None
        if worst is None
        else {"attack": worst.attack, "metric": worst.metric, "value": [worst.value, worst.low, worst.high],
              "chance": worst.chance, "grade": str(worst.grade), "at least": bool(worst.invalid)},
        "invalid": {each.attack: list(each.invalid) for each in verdict.attacks
                    if each.grade is Grade.NO_VERDICT and each.counts},
        "not made": {attack: why for attack, why in verdict.not_attacked.items() if why != LEFT_OUT.text},
        "why": "" if worst is not None else verdict.text,
    }  # fmt: skip


def _scores(result: AuditResult, setting: str) -> Row:
    return {metric: _interval(result.score("expert", setting, metric)) for metric in _METRICS}


def _interval(score: Score | None) -> list[float | None] | None:
    return None if score is None else [score.value, score.low, score.high]
