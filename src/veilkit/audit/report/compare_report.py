"""A comparison as compare.html, compare.md and compare.json."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from veilkit.audit.report.comparison import Compared, Comparison, LevelComparison, compare, read_audits
from veilkit.audit.report.html import as_markup, environment
from veilkit.audit.report.markdown import cell, grades, table, with_span
from veilkit.audit.report.model import ADVICE
from veilkit.audit.report.plane import Point, anchors, plane_figure
from veilkit.audit.result import AuditResult
from veilkit.audit.verdicts.verdict import KNOWS, AttackVerdict, Grade, Thresholds, chosen_thresholds
from veilkit.audit.verdicts.wording import percent, points
from veilkit.configs import as_dict
from veilkit.errors import DestinationError
from veilkit.media.writing import write_atomically
from veilkit.types import Level, Score
from veilkit.version import __version__

PAGE, TEXT, VALUES = "compare.html", "compare.md", "compare.json"


def write_comparison(
    audits: Sequence[str | Path], out: str | Path, *, thresholds: str | Path | Thresholds | None = None
) -> Comparison:
    """Compare audits, given as folders or audit.json files, and write the three files into the folder `out`."""
    graded_by = None if thresholds is None else chosen_thresholds(thresholds)
    found = compare(read_audits([Path(each) for each in audits]), graded_by)
    target = Path(out)
    try:
        target.mkdir(parents=True, exist_ok=True)
        for name, text in ((VALUES, as_json(found)), (TEXT, as_markdown(found)), (PAGE, as_html(found))):
            write_atomically(target / name, text.encode("utf-8"), target)
    except OSError as error:
        raise DestinationError(f"the comparison cannot be written to {target}: {error.strerror}") from None
    except DestinationError as error:
        raise DestinationError(f"the comparison cannot be written to {target}: {error}") from None
    return found


def as_html(found: Comparison) -> str:
    """compare.html: one file that needs no network and shows no picture."""
    return (
        environment()
        .get_template("compare.html")
        .render(
            found=found,
            knows=KNOWS,
            advice=ADVICE,
            meaning=found.thresholds.meaning(),
            attacks=_attacks(found),
            planes=[_plane(found, level) for level in found.levels if level.worst],
            levels=list(Level),
            leak=leak,
            change=change,
            level_text=level_text,
            made_by=__version__,
        )
    )


def as_markdown(found: Comparison) -> str:
    """compare.md: the same in tables."""
    return "\n".join(["# Audits compared", "", *_lines(found), *grades(found.thresholds.meaning())])


def as_json(found: Comparison) -> str:
    """compare.json: every number of the other two."""
    values = {
        "format": "veilkit-compare-1",
        "veilkit": __version__,
        "thresholds": as_dict(found.thresholds),
        "audits": [_values(each) for each in found.audits],
        "levels": [dataclasses.asdict(each) for each in found.levels],
        "notes": found.notes,
    }
    return json.dumps(values, indent=2, allow_nan=False) + "\n"


def leak(verdict: AttackVerdict | None) -> str:
    """A leak as a cell: value, interval and chance."""
    if verdict is None:
        return "not made"
    if verdict.grade is Grade.NO_VERDICT:
        return "no verdict (gates failed)"
    ends = (
        "" if verdict.low is None or verdict.high is None else f" ({100 * verdict.low:.1f}–{100 * verdict.high:.1f})"
    )
    return ("at least " if verdict.invalid else "") + percent(verdict.value) + ends


def change(score: Score | None) -> str:
    """A paired difference in points with its interval."""
    if score is None:
        return "–"
    ends = "" if score.low is None or score.high is None else f" ({points(score.low)} to {points(score.high)})"
    return points(score.value) + ends


def _lines(found: Comparison) -> Iterator[str]:
    first = found.audits[0].name
    head = (
        "",
        "release",
        "method",
        "utility (95 % interval)",
        f"utility, change from {cell(first)} (points)",
        *Level,
    )
    rows = [
        (each.label, each.name, each.method,
         "not measured" if each.utility is None else with_span(each.utility.score),
         change(each.differences.get("utility")), *(verdict.grade for verdict in each.verdicts))
        for each in found.audits
    ]  # fmt: skip
    yield from table(head, rows)
    notes = [*found.notes, *(f"{level.level}: {level_text(level)}" for level in found.levels if not level.worst)]
    yield from (*(f"- {cell(note)}" for note in notes), *([""] if notes else []))
    for level in found.levels:
        if not level.worst:
            continue
        yield from (f"## {level.level} {KNOWS[level.level][0]}: {KNOWS[level.level][1]}", "", level_text(level), "")
        by_label = {each.label: each for each in found.audits}
        yield from table(
            ("release", "utility", "leak over chance", "worst attack", "front"),
            [(by_label[label].name, percent(_kept(by_label[label])), percent(worst.over_chance or 0.0), worst.attack,
              "on the front" if label in level.front else "beaten") for label, worst in level.worst.items()],
        )  # fmt: skip
    yield from ("## Attack by attack", "")
    yield from ("Where hits are few, the upper end of an interval is the exact (Clopper-Pearson) one.", "")
    for name, verdicts in _attacks(found).items():
        cells = [(each.label, each.name, leak(verdict), verdict.grade if verdict else "not made",
                  percent(verdict.chance) if verdict and verdict.chance is not None else "–",
                  change(each.differences.get(name)))
                 for each, verdict in zip(found.audits, verdicts, strict=True)]  # fmt: skip
        head = ("", "release", "found (95 % interval)", "verdict", "chance", f"change from {cell(first)} (points)")
        yield from (f"### {name}", "", *table(head, cells))
    yield from (" ".join(ADVICE), "")


def level_text(level: LevelComparison) -> str:
    """What a level's comparison rests on, in words."""
    if not level.attacks:
        why = f" Valid in some only: {', '.join(level.left_out)}." if level.left_out else ""
        return f"Not compared: no attack of this level gave a verdict in all audits.{why}"
    others = f" Left out, as valid in some only: {', '.join(level.left_out)}." if level.left_out else ""
    return (
        f"Compared by the worst of the attacks that gave a verdict in all audits: {', '.join(level.attacks)}.{others}"
    )


def _attacks(found: Comparison) -> dict[str, list[AttackVerdict | None]]:
    """Every attack that any audit made, with its verdict in each."""
    names = {each.attack: None for audit in found.audits for verdict in audit.verdicts for each in verdict.attacks}
    return {name: [audit.attack(name) for audit in found.audits] for name in names}


def _plane(found: Comparison, level: LevelComparison) -> dict[str, Any]:
    shown = [
        Point.of(each.label, each.name, each.utility.score, level.worst[each.label])
        for each in found.together
        if each.utility is not None and each.label in level.worst
    ]
    if (use := found.audits[0].utility) is not None:
        shown += anchors(use.originals, use.chance, list(level.worst.values()))
    title = f"{level.level} {KNOWS[level.level][0]}: what is kept and what leaks"
    drawn = as_markup(plane_figure(shown, name=f"plane-{level.level}", title=title))
    return {"title": title, "svg": drawn, "level": level, "text": level_text(level), "legend": {}, "note": ""}


def _values(each: Compared) -> dict[str, Any]:
    result: AuditResult = each.result
    return {
        "label": each.label,
        "name": each.name,
        "method": each.method,
        "config": result.release.get("config") if result.release else None,
        "originals_sha256": result.originals.sha256,
        "protected_sha256": result.protected.sha256,
        "expert": result.expert.name,
        "judge": result.judge.name,
        "not_comparable": each.apart,
        "utility": None if each.utility is None else dataclasses.asdict(each.utility.score),
        "verdicts": [dataclasses.asdict(verdict) for verdict in each.verdicts],
        "differences_from_first": {name: dataclasses.asdict(score) for name, score in each.differences.items()},
    }


def _kept(each: Compared) -> float:
    return 0.0 if each.utility is None else each.utility.score.value
