"""`veilkit audit compare`: several audits side by side."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

Audits = Annotated[
    list[Path], typer.Argument(metavar="AUDIT", help="Folders that `veilkit audit` wrote, or their audit.json.")
]
Out = Annotated[Path, typer.Option(help="Folder for compare.html, compare.json and compare.md.")]
ThresholdsFile = Annotated[
    Path | None,
    typer.Option(
        "--thresholds",
        metavar="TOML",
        help="Grade all audits anew: from which share of the way from chance to certainty a leak counts as how bad.",
        show_default="those of the first audit",
    ),
]


def compare(audits: Audits, out: Out = Path("compare"), thresholds: ThresholdsFile = None) -> None:
    """Compare audits: what each release keeps and leaks at each level, and which no other beats.

    The first audit is what the others are compared with, search by search where they have the same originals. Audits
    of other originals, of other searches, or by another expert or judge are listed, and not compared.
    """
    from veilkit.audit.report.compare_report import PAGE, change, write_comparison

    found = write_comparison(audits, out, thresholds=thresholds)
    for each in found.audits:
        kept = "utility not measured" if each.utility is None else f"utility {100 * each.utility.score.value:.1f} %"
        if "utility" in each.differences:
            kept += f", {change(each.differences['utility'])} points"
        levels = ", ".join(f"{verdict.level} {verdict.grade}" for verdict in each.verdicts)
        typer.echo(f"{each.label}. {each.name} ({each.method}): {kept}; {levels}")
    names = {each.label: each.name for each in found.audits}
    for level in found.levels:
        if level.front:
            typer.echo(f"Not beaten at {level.level}: {', '.join(names[label] for label in level.front)}")
    for note in found.notes:
        typer.echo(f"Note: {note}")
    typer.echo(f"Report: {out / PAGE}")
