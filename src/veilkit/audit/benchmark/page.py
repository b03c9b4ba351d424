"""The one page of a benchmark: what was done, what an attacker gets, what is kept, in plain words."""

from __future__ import annotations

import base64
import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from veilkit.audit.benchmark.tables import Row, about, found
from veilkit.audit.report.html import as_markup, environment
from veilkit.audit.report.model import ADVICE, surroundings_text, utility, utility_text
from veilkit.audit.report.plane import Point, plane_figure
from veilkit.audit.report.terminal import worst_first
from veilkit.audit.verdicts.verdict import KNOWS, Thresholds
from veilkit.methods import METHODS
from veilkit.types import Level
from veilkit.version import __version__

if TYPE_CHECKING:
    from veilkit.audit.benchmark.run import Benchmark

TITLE = "What is kept and what leaks, by method and level"
_ALONE = (
    "<style>text{font:12px sans-serif;fill:#5b6470}text.label{font-weight:600;fill:#1d2126}.grid{stroke:#e3e5e8}"
    ".whisker{stroke:#b34f08;stroke-width:3;opacity:.35}.release{fill:#b34f08;stroke:#b34f08}</style>"
)


def figure_svg(rows: Sequence[Row], *, alone: bool = False, name: str = "figure") -> str:
    """Utility against leak, a point for each method and level. alone: as a file that brings its own colours."""
    points = [
        Point.of(f"{row.label} {each.level}", f"{row.label}, {each.name} attacker", use.score, each.worst)
        for row in rows
        if (use := utility(row.result)) is not None
        for each in row.result.verdicts
        if each.worst is not None
    ]
    drawn = plane_figure(points, name=name, title=TITLE, front=False)
    return drawn.replace("<svg ", '<svg xmlns="http://www.w3.org/2000/svg" ', 1).replace(
        "<title", f"{_ALONE}<title", 1
    ) if alone else drawn  # fmt: skip


def page_html(parts: Sequence[tuple[str, Benchmark]], folder: Path) -> str:
    """The page of one benchmark or several, each under its title; links go from `folder`."""
    return (
        environment()
        .get_template("benchmark.html")
        .render(
            parts=[_part(title, each, folder, f"part{place}") for place, (title, each) in enumerate(parts)],
            knows=[(level, *KNOWS[level]) for level in Level],
            advice=ADVICE,
            meaning=Thresholds().meaning(),
            made_by=__version__,
        )
    )


def _part(title: str, done: Benchmark, folder: Path, name: str) -> dict[str, Any]:
    rows = [_row(each, done, folder) for each in done.rows]
    drawn = any(utility(each.result) for each in done.rows)
    return {
        "title": title or done.values["data"]["name"],
        "name": name,
        "data": done.values["data"],
        "expert": done.values["expert"]["name"],
        "judge": done.values["judge"]["name"],
        "rows": rows,
        "sheet": None if done.sheet is None else _address(done.sheet),
        "figure": {"title": TITLE, "svg": as_markup(figure_svg(done.rows, name=name)), "legend": {}, "note": ""}
        if drawn
        else None,
        "about": about(done.values),
        "notes": [*done.values["notes"],
                  *(f"{name} was not audited: {why}" for name, why in done.values["not audited"].items())],
    }  # fmt: skip


def _row(row: Row, done: Benchmark, folder: Path) -> dict[str, Any]:
    worst = worst_first(row.result)[0]
    return {
        "label": row.label,
        "summary": METHODS[row.method].summary,
        "kept": row.kept,
        "use": utility_text(row.result, utility(row.result)),
        "verdicts": [(each, found(each)) for each in row.result.verdicts],
        "worst": worst,
        "surroundings": surroundings_text(row.result),
        "alarms": [each for each in row.result.alarms if each.name != "secret published"],
        "report": os.path.relpath(done.folder / row.report, folder).replace(os.sep, "/"),
    }


def _address(file: Path) -> str:
    return f"data:image/jpeg;base64,{base64.b64encode(file.read_bytes()).decode()}"
