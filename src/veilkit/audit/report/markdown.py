"""The report as Markdown: the same content in tables, for who reads it in an editor or cites it."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence

from veilkit.audit.report.command import command
from veilkit.audit.report.figures import SETTING_TEXT
from veilkit.audit.report.overview import ADVICE, plane_points, rests_on, thresholds_of, utility
from veilkit.audit.report.tables import attack_rows, recognition_tables
from veilkit.audit.report.templating import direction, shown, span
from veilkit.audit.result import AuditResult
from veilkit.audit.verdicts.remedies import needed
from veilkit.audit.verdicts.thresholds import Thresholds
from veilkit.audit.verdicts.verdict import KNOWS
from veilkit.audit.verdicts.wording import percent, points
from veilkit.types import Score


def write_markdown(result: AuditResult) -> str:
    """audit.md. It holds no picture, no path and no original's name."""
    parts = (
        _alarms(result), _short(result), _findings(result), _plane(result), _attacks(result), _recognition(result),
        _images(result), _limits(result), grades(thresholds_of(result)), _repeat(result),
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


def grades(thresholds: Thresholds) -> Iterator[str]:
    """What the grades mean."""
    yield from ("## How verdicts are made", "")
    yield from (
        "A rate r where chance is c goes (r − c) / (1 − c) of the way from chance to certainty. Other thresholds can "
        "be set with `--thresholds`.",
        "",
    )
    yield from table(("grade", "means"), thresholds.meaning().items())


def with_span(score: Score) -> str:
    """A value and its interval."""
    return f"{shown(score)} ({span(score)})" if span(score) else shown(score)


def _alarms(result: AuditResult) -> Iterator[str]:
    if result.alarms:
        yield from ("## Alarms: something is wrong, whatever the scores say", "")
        yield from (*(f"- **{cell(alarm.name)}**: {cell(alarm.text)}" for alarm in result.alarms), "")


def _short(result: AuditResult) -> Iterator[str]:
    yield from ("## In short", "")
    rows = [
        (f"{each.level} {KNOWS[each.level][0]}: {KNOWS[each.level][1]}", f"**{each.grade}**",
         " ".join(filter(None, (each.text, each.aside))))
        for each in result.verdicts
    ]  # fmt: skip
    yield from table(("attacker", "verdict", "what was found"), rows)
    if more := needed(result.verdicts):
        yield from (f"For more verdicts: {more}.", "")
    use = utility(result)
    if use is None:
        yield from ("Utility was not measured.", "")
    else:
        kept = "" if use.kept is None else f", {percent(use.kept)} of what the originals allow"
        originals = "" if use.originals is None else f"; originals {with_span(use.originals)}"
        yield from (f"Utility kept (Rank-1 of {result.expert.name}): {with_span(use.score)}{originals}{kept}.", "")
    if not result.independent:
        yield from ("**Judge and expert are one and the same model**: the judge's numbers are not independent.", "")
    yield from table(("rests on", ""), rests_on(result).items())
    yield from (" ".join(ADVICE), "")


def _findings(result: AuditResult) -> Iterator[str]:
    yield from ("## Findings", "")
    rows = [
        (each.title, each.role, f"~~{each.figure}~~ INVALID" if each.invalid else each.figure,
         each.text + (f" Nothing may be concluded: {'; '.join(each.invalid)}." if each.invalid else ""))
        for each in result.summary
    ]  # fmt: skip
    yield from table(("finding", "role", "figure", "in words"), rows)


def _plane(result: AuditResult) -> Iterator[str]:
    rows = [(f"{p.label}: {p.name}", percent(p.utility), percent(p.leak)) for p in plane_points(result)]
    if rows:
        yield from ("## Privacy and utility", "")
        yield from table(("point", "utility (Rank-1 of the expert)", "leak over chance"), rows)


def _attacks(result: AuditResult) -> Iterator[str]:
    made, missing = [], []
    for row in attack_rows(result):
        evidence = row.evidence
        if not evidence.applicable:
            missing.append((f"`{evidence.attack}`", str(evidence.level), evidence.why_missing))
        chances = evidence.details.get("chance", {})
        verdict = row.verdict.grade if row.verdict else "baseline" if row.baseline else ""
        gates = "; ".join(filter(None, (*(f"FAILED: {why}" for why in evidence.invalid), row.gates)))
        for place, score in enumerate(row.scores if evidence.applicable else ()):
            chance = percent(chances[score.metric]) if score.metric in chances else "–"
            first = (f"`{evidence.attack}`", str(evidence.level), verdict) if place == 0 else ("", "", "")
            value = f"~~{shown(score)}~~" if row.void else shown(score)
            made.append((*first, score.metric, value, span(score), chance, gates if place == 0 else ""))
    yield from ("## Attack by attack", "")
    yield from table(("attack", "level", "verdict", "score", "value", "95 % interval", "chance", "gates"), made)
    yield from table(("not made", "level", "why"), missing)


def _recognition(result: AuditResult) -> Iterator[str]:
    for each in recognition_tables(result):
        role = "utility, high is good" if each.by == "expert" else "privacy, low is good"
        yield from (f"## Recognition by the {each.by}, {each.who.name} ({role})", "")
        rows = [(SETTING_TEXT[setting], *(with_span(m.score) for m in cells)) for setting, cells in each.rows]
        if each.differences:
            rows.append(("protected minus raw, points", *(_change(score) for score in each.differences)))
        chances = ("–" if m.chance is None else percent(m.chance) for m in each.rows[0][1])
        yield from table(("query in gallery", *each.metrics), [*rows, ("blind guessing", *chances)])
    rows = [
        (roc.by, SETTING_TEXT[roc.setting], f"{roc.auc:.3f}", percent(roc.eer), percent(roc.tpr[roc.fpr.index(0.01)]))
        for roc in result.rocs
    ]
    if rows:
        yield from ("## Pairs told apart", "")
        yield from table(("by", "pictures", "area under ROC", "equal error rate", "accepted at 1 % false"), rows)


def _change(score: Score | None) -> str:
    if score is None:
        return "–"
    ends = "" if score.low is None or score.high is None else f" ({points(score.low)} to {points(score.high)})"
    return points(score.value) + ends


def _images(result: AuditResult) -> Iterator[str]:
    rows = [
        (m.score.metric, m.setting, with_span(m.score), f"{m.score.role}, {direction(m)}", m.score.note)
        for m in result.measurements
        if m.by == "images"
    ]
    if rows:
        yield from ("## Pictures as such", "")
        yield from table(("measured", "of", "mean (95 % interval)", "role", "note"), rows)


def _limits(result: AuditResult) -> Iterator[str]:
    yield from ("## What was not measured, and what to keep in mind", "")
    yield from table(("not measured", "why"), [(each.what, each.why) for each in result.unmeasured])
    yield from (*(f"- {cell(note)}" for note in result.notes), "")


def _repeat(result: AuditResult) -> Iterator[str]:
    yield from ("## How to repeat this audit", "", "```", command(result), "```", "")
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
