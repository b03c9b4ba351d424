"""The report as Markdown: the same content in tables, for who reads it in an editor or cites it."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence

from veilkit.audit.report.figures import SETTING_TEXT
from veilkit.audit.report.model import ADVICE, RISKS, Report, report_of
from veilkit.audit.result import AuditResult
from veilkit.audit.verdicts.verdict import Grade
from veilkit.audit.verdicts.wording import direction, percent, points, shown, span
from veilkit.types import Score

_RISK_HEAD = ("risk (WP216)", "verdict", "main attack", "finds (95 % interval)", "baseline", "control", "residual")


def write_markdown(result: AuditResult) -> str:
    """audit.md. It holds no picture, no path and no original's name."""
    report = report_of(result)
    parts = (
        _alarms(result), _short(report), _risks(report), _findings(report), _plane(report), _attacks(report),
        _recognition(report), _images(report), _limits(result), grades(report.grades), _repeat(report),
    )  # fmt: skip
    return "\n".join([f"# Audit of {cell(result.protected.name)}", "", *(line for part in parts for line in part)])


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    """A table as lines, an empty one after it; nothing where it has no rows."""
    lines = [f"| {' | '.join(map(cell, row))} |" for row in rows]
    return [f"| {' | '.join(head)} |", f"|{'---|' * len(head)}", *lines, ""] if lines else []


def cell(text: str) -> str:
    """Text that stays within its cell, and is nothing but text.

    >>> cell("a|b <i>")
    'a\\\\|b &lt;i>'
    """
    return " ".join(text.replace("|", "\\|").replace("<", "&lt;").split())


def grades(meaning: Mapping[Grade, str]) -> Iterator[str]:
    """What the grades mean."""
    yield from ("## How verdicts are made", "")
    yield from (
        "A rate r where chance is c goes (r − c) / (1 − c) of the way from chance to certainty. Other thresholds can "
        "be set with `--thresholds`.",
        "",
    )
    yield from table(("grade", "means"), meaning.items())


def with_span(score: Score) -> str:
    """A value and its interval."""
    return f"{shown(score)} ({span(score)})" if span(score) else shown(score)


def _alarms(result: AuditResult) -> Iterator[str]:
    if result.alarms:
        yield from ("## Alarms: something is wrong, whatever the scores say", "")
        yield from (*(f"- **{cell(alarm.name)}**: {cell(alarm.text)}" for alarm in result.alarms), "")


def _short(report: Report) -> Iterator[str]:
    yield from ("## In short", "")
    rows = [
        (f"{each.level} {each.name}: {each.knows}", f"**{each.grade}**", each.sentences) for each in report.verdicts
    ]
    yield from table(("attacker", "verdict", "what was found"), rows)
    if report.surroundings:
        yield from (f"**By the surroundings, not the face.** {report.surroundings}", "")
    if report.needed:
        yield from (f"For more verdicts: {report.needed}.", "")
    yield from (f"**Utility kept.** {report.utility_text}", "")
    for caution in report.cautions:
        yield from (f"**{caution}**", "")
    yield from table(("rests on", ""), report.rests_on.items())
    yield from (" ".join(ADVICE), "")


def _risks(report: Report) -> Iterator[str]:
    rows = [(f"{row.risk}: {row.asks}", row.grade, row.attack, row.figure, row.naive, row.control,
             row.residual)
            for row in report.risks]  # fmt: skip
    yield from ("## Singling out, linkability, inference", "")
    yield from table(_RISK_HEAD, rows)
    yield from (RISKS, "")


def _findings(report: Report) -> Iterator[str]:
    yield from ("## Findings", "")
    rows = [
        (row.finding.title, row.finding.role,
         f"~~{row.finding.figure}~~ INVALID" if row.warning else row.finding.figure,
         " ".join(filter(None, (row.finding.text, row.warning))))
        for row in report.findings
    ]  # fmt: skip
    yield from table(("finding", "role", "figure", "in words"), rows)


def _plane(report: Report) -> Iterator[str]:
    if report.plane:
        rows = [(f"{p.label}: {p.name}", percent(p.utility), percent(p.leak)) for p in report.plane]
        yield from ("## Privacy and utility", "")
        yield from table(("point", "utility (Rank-1 of the expert)", "leak over chance"), rows)


def _attacks(report: Report) -> Iterator[str]:
    made = []
    for row in report.made:
        evidence = row.evidence
        gates = "; ".join(filter(None, (row.gates_failed and f"FAILED: {row.gates_failed}", row.gates)))
        for place, score in enumerate(row.scores):
            first = (f"`{evidence.attack}`", str(evidence.level), row.grade) if place == 0 else ("", "", "")
            value = f"~~{shown(score)}~~" if row.void else shown(score)
            made.append((*first, score.metric, value, span(score), row.chance(score), gates if place == 0 else ""))
    missing = [
        (f"`{row.evidence.attack}`", str(row.evidence.level), row.evidence.why_missing) for row in report.not_made
    ]
    yield from ("## Attack by attack", "")
    yield from table(("attack", "level", "verdict", "score", "value", "95 % interval", "chance", "gates"), made)
    yield from table(("not made", "level", "why"), missing)


def _recognition(report: Report) -> Iterator[str]:
    for each in report.recognition:
        role = "utility, high is good" if each.by == "expert" else "privacy, low is good"
        yield from (f"## Recognition by the {each.by}, {each.who.name} ({role})", "")
        rows = [(SETTING_TEXT[setting], *(with_span(m.score) for m in cells)) for setting, cells in each.rows]
        if each.differences:
            rows.append(("protected minus raw, points", *(_change(score) for score in each.differences)))
        chances = ("–" if m.chance is None else percent(m.chance) for m in each.rows[0][1])
        yield from table(("query in gallery", *each.metrics), [*rows, ("blind guessing", *chances)])
    rows = [
        (roc.by, SETTING_TEXT[roc.setting], f"{roc.auc:.3f}", percent(roc.eer), percent(roc.tpr[roc.fpr.index(0.01)]))
        for roc in report.result.rocs
    ]
    if rows:
        yield from ("## Pairs told apart", "")
        yield from table(("by", "pictures", "area under ROC", "equal error rate", "accepted at 1 % false"), rows)


def _change(score: Score | None) -> str:
    if score is None:
        return "–"
    ends = "" if score.low is None or score.high is None else f" ({points(score.low)} to {points(score.high)})"
    return points(score.value) + ends


def _images(report: Report) -> Iterator[str]:
    rows = [
        (m.score.metric, m.setting, with_span(m.score), f"{m.score.role}, {direction(m)}", m.score.note)
        for m in report.images
    ]
    if rows:
        yield from ("## Pictures as such", "")
        yield from table(("measured", "of", "mean (95 % interval)", "role", "note"), rows)


def _limits(result: AuditResult) -> Iterator[str]:
    yield from ("## What was not measured, and what to keep in mind", "")
    yield from table(("not measured", "why"), [(each.what, each.why) for each in result.unmeasured])
    yield from (*(f"- {cell(note)}" for note in result.notes), "")


def _repeat(report: Report) -> Iterator[str]:
    result = report.result
    yield from ("## How to repeat this audit", "", "```", report.command, "```", "")
    rows = [("originals", f"{result.originals.pictures} pictures, SHA-256 `{result.originals.sha256}`"),
            ("protected", f"{result.protected.pictures} pictures, SHA-256 `{result.protected.sha256}`"),
            ("pairs", f"found {result.paired_by}")]  # fmt: skip
    if result.release is not None:
        rows.append(("release", f"{result.release['method']} `{json.dumps(result.release['config'])}`"))
    rows += [(what, f"{who.name}, {who.dim} features, licence: {who.licence}; SHA-256 `{who.sha256}`")
             for what, who in (("expert", result.expert), ("judge", result.judge))]  # fmt: skip
    rows.append(("settings", f"`{json.dumps(dict(result.config))}`"))
    versions = ", ".join(f"{name} {value}" for name, value in result.versions.items())
    rows.append(("versions", f"veilkit {result.veilkit}, {versions}"))
    yield from table(("what", "which"), rows)
