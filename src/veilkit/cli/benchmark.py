"""`veilkit benchmark`: methods side by side on one's own pictures."""

from __future__ import annotations

from typing import Any

import typer
from click import format_filename as shown

from veilkit.audit.benchmark.options import BenchmarkOptions
from veilkit.cli.bound import bound


@bound(BenchmarkOptions)
def benchmark(given: dict[str, Any]) -> None:
    """Protect pictures by several methods, attack each result, and compare them in tables and a figure for a paper.

    Writes benchmark.html, table.md, table.csv, table.tex, figure.svg and results.json, with all that is needed to
    cite or repeat them; benchmark.toml holds the audits as a spec. A stopped run goes on with the same command, and a
    method that is added later takes its own time only.
    """
    options = BenchmarkOptions(**given)
    options.check()  # before anything heavy is imported
    from veilkit.audit.benchmark.run import PAGE, run_benchmark

    done = run_benchmark(options, on_audit=lambda name: typer.echo(f"done: {name}", err=True))
    for line in lines(done):
        typer.echo(line)
    typer.echo(
        f"Page: {shown(done.folder / PAGE)} (beside it table.md, table.csv, table.tex, figure.svg, results.json)"
    )


def lines(done: Any) -> list[str]:
    """The verdicts of a benchmark, a line for each method."""
    from veilkit.display import Table

    rows = [(row.label, row.kept, *(str(each.grade) for each in row.result.verdicts)) for row in done.rows]
    head = ("method", "kept", *(str(each.level) for each in done.rows[0].result.verdicts))
    notes = [f"Note: {note}" for note in done.values["notes"]]
    return [*repr(Table("method", head, rows)).splitlines(), *notes,
            *(f"{name} was not audited: {why}" for name, why in done.missing.items())]  # fmt: skip
