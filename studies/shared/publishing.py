"""What follows from a study's cells: its report, its results.json, the tables on pages, the rows of claims."""

from __future__ import annotations

import datetime
import json
import shutil
from collections.abc import Collection, Iterable, Mapping
from pathlib import Path
from typing import Any

from benchmarks import claims
from studies.shared.cells import read_cells, read_settings
from studies.shared.results import Results, summary
from studies.shared.study import ROOT, Study
from studies.shared.tables import markdown
from veilkit.audit.cells.store import as_json
from veilkit.errors import DestinationError, UsageError
from veilkit.media.writing import write_atomically


def render(tables: Mapping[str, str], pages: Iterable[Path], optional: Collection[str] = ()) -> list[Path]:
    """Put each table between its marks, on every page that has them; returns the pages that were written.

    Raises DestinationError for a table that has a place on none of them, unless it is optional.
    """
    texts = {page: page.read_text(encoding="utf-8") for page in dict.fromkeys(pages) if page.is_file()}
    before = dict(texts)
    for name, table in tables.items():
        places = [page for page, text in texts.items() if _marks(name)[0] in text]
        if not places and name not in optional:
            raise DestinationError(f"no page has a place for the table between {' and '.join(_marks(name))}")
        for page in places:
            texts[page] = placed(texts[page], name, table, page.name)
    changed = [page for page, text in texts.items() if text != before[page]]
    for page in changed:
        page.write_text(texts[page], encoding="utf-8")
    return changed


def placed(text: str, name: str, table: str, page: str = "the page") -> str:
    """`text` with `table` between the marks of `name`."""
    opening, closing = _marks(name)
    head, found, rest = text.partition(opening)
    _, closed, tail = rest.partition(closing)
    if not found or not closed:
        raise DestinationError(f"{page} has no place between {opening} and {closing}")
    return f"{head}{opening}\n{table}\n{closing}{tail}"


def _marks(name: str) -> tuple[str, str]:
    return f"<!-- {name} tables -->", f"<!-- /{name} tables -->"


def write_report(study: Study[Any], folder: Path, config: Any) -> Path:
    """`folder`/report.md: the tables of the cells that are there, and the options."""
    settings = study.settings(config)
    cells = read_cells(folder, settings)
    tables = [table for name, table in study.tables(cells, config).items() if name not in study.elsewhere]
    sections = [f"# {study.title}", study.scale(cells, config), *tables]
    drawn = sorted(file.name for file in folder.glob("*.svg"))
    if drawn:
        sections.append("Figures: " + ", ".join(f"[{Path(name).stem}]({name})" for name in drawn) + ".")
    sections.append("## Options\n\n```json\n" + json.dumps(settings, indent=2, default=str) + "\n```")
    file = folder / "report.md"
    write_atomically(file, ("\n\n".join(filter(None, sections)) + "\n").encode(), folder)
    return file


def publish(study: Study[Any], folder: Path, *, record: bool, computed: bool) -> Results:
    """Write results.json, tables and claims of what was published and of the cells in `folder`, which replace it.

    computed: just now, so that rows of claims get today's date even where no figure changed.
    """
    config = study.published
    new = read_cells(folder, study.settings(config))
    results = updated(study, Results.load(study.folder), summary(new), read_settings(folder))
    if new:
        results.save(study.folder)
        for name in study.figures:
            if (folder / name).is_file():
                shutil.copyfile(folder / name, study.folder / name)
    for reason in study.withheld(results.cells, config):
        print(f"no row of claims: {reason}")
    if record and results.cells:
        record_claims(study, results.cells, keep_dates=not computed)
    tables = {**tables_of(study, results), f"{study.name} claims": claims_table(study)}
    pages = (study.folder / "README.md", ROOT / "README.md", *study.pages)
    for page in render(tables, pages, study.elsewhere):
        print(f"tables on {page.relative_to(ROOT)}")
    return results


def updated(
    study: Study[Any], held: Results | None, new: Mapping[str, Any], settings: list[dict[str, Any]]
) -> Results:
    """Published results with new cells in place of older ones of these names."""
    if held is None and not new:
        raise UsageError(f"{study.name} was never published, and there are no cells of it yet")
    cells = {**(held.cells if held else {}), **new}
    if held is not None and not new:
        return held
    return Results(
        study.name, datetime.date.today().isoformat(), study.published.seed, study.scale(cells, study.published),
        settings, cells,
    )  # fmt: skip


def tables_of(study: Study[Any], results: Results) -> Mapping[str, str]:
    """The tables of published results, by the names of their places."""
    return study.tables(results.cells, study.published) if results.cells else results.tables


def command(study: Study[Any]) -> str:
    """How claims say that a study is run."""
    return f"VEILKIT_DATA=... python -m studies {study.name}"


def claims_table(study: Study[Any]) -> str:
    """The study's rows of claims that are recorded, those that fall short first."""
    rows = [row for row in claims.load() if row["command"] == command(study)]
    rows.sort(key=lambda row: bool(row["holds"]))
    shown = [
        (row["claim"], f"{row['figure']:g} {row['unit']}".strip(), row["bar"], "yes" if row["holds"] else "**no**")
        for row in rows
    ]
    return markdown(("claim", "figure", "bar", "holds"), shown)


def claim_rows(study: Study[Any], cells: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The rows of claims of a study's cells, with what they share."""
    about = {
        "data": study.data, "seed": study.published.seed, "scale": study.scale(cells, study.published),
        "command": command(study),
    }  # fmt: skip
    return [{**about, **row} for row in study.claims(cells, study.published)]


def record_claims(study: Study[Any], cells: Mapping[str, Any], *, keep_dates: bool) -> None:
    """Write the rows of claims. keep_dates: a row in which nothing changed stays as it is."""
    known = {row["id"]: row for row in claims.load()}
    for row in claim_rows(study, cells):
        old = known.get(row["id"], {})
        if not keep_dates or any(old.get(key) != value for key, value in as_json(row).items()):
            claims.record(**row)
