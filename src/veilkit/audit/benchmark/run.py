"""`benchmark`: protect, audit and compare, and write what can be shown, reused and cited."""

from __future__ import annotations

import datetime
import json
import os
import platform
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from veilkit.audit.benchmark.options import Asked, BenchmarkOptions
from veilkit.audit.benchmark.page import figure_svg, page_html
from veilkit.audit.benchmark.plan import Plan, as_values, planned
from veilkit.audit.benchmark.tables import Row, as_csv, as_latex, as_markdown
from veilkit.audit.inputs.spec_text import spec_text
from veilkit.audit.matrix import Audited, audits
from veilkit.audit.private_files import write_private
from veilkit.audit.report.compare_report import write_comparison
from veilkit.audit.run import REPORT
from veilkit.errors import DataError
from veilkit.experts.names import file_sha256
from veilkit.key import Key
from veilkit.pipeline.sheet import write_sheet
from veilkit.version import __version__

PAGE, SPEC, MATRIX, COMPARED, SHEET = "benchmark.html", "benchmark.toml", "matrix", "compare", "pictures.jpg"
FORMAT = "veilkit-benchmark-1"


@dataclass(frozen=True, slots=True)
class Benchmark:
    """What a benchmark found. values: results.json. missing: methods that could not be audited, and why."""

    rows: tuple[Row, ...]
    missing: dict[str, str]
    values: dict[str, Any]
    folder: Path
    sheet: Path | None


def run_benchmark(options: BenchmarkOptions, *, on_audit: Callable[[str], None] | None = None) -> Benchmark:
    """Run it, or go on with it, below `options.destination`; on_audit is told each method that is done."""
    options.check()
    plan, out = planned(options), options.destination
    write_private(out / SPEC, spec_text(plan.spec, out).encode())
    done: list[Audited] = []
    for each in audits(plan.spec, out / MATRIX, workers=options.workers):
        done.append(each)
        if on_audit is not None:
            on_audit(plan.asked[each.combination.source.name].text)
    rows = tuple(_row(plan, each, out) for each in done if each.result is not None)
    missing = {plan.asked[each.combination.source.name].text: each.why for each in done if each.result is None}
    if not rows:
        raise DataError(f"no method could be audited: {'; '.join(f'{name}: {why}' for name, why in missing.items())}")
    values = _values(options, plan, rows, missing)
    found = Benchmark(rows, missing, values, out, _sheet(options, plan, rows, out))
    if len(rows) > 1:
        write_comparison([out / MATRIX / "audits" / row.audit for row in rows], out / COMPARED)
    for name, text in (
        ("results.json", json.dumps(values, indent=2, allow_nan=False) + "\n"),
        ("table.md", as_markdown(rows, values)),
        ("table.csv", as_csv(rows)),
        ("table.tex", as_latex(rows, values)),
        ("figure.svg", figure_svg(rows, alone=True)),
        (PAGE, page_html([("", found)], out)),
    ):
        write_private(out / name, text.encode())
    return found


def _row(plan: Plan, each: Audited, out: Path) -> Row:
    assert each.result is not None
    asked: Asked = plan.asked[each.combination.source.name]
    folder = each.combination.name
    return Row(asked.text, asked.method, folder, each.result, f"{MATRIX}/audits/{folder}/{REPORT}")


def _sheet(options: BenchmarkOptions, plan: Plan, rows: tuple[Row, ...], out: Path) -> Path | None:
    if not options.show_originals:
        return None
    names = {each.text: slug for slug, each in plan.asked.items()}
    folder, key = out / MATRIX / "releases", Key.from_seed(options.seed)
    dataset = plan.spec.datasets[0].name
    made = {row.label: folder / f"{dataset}.{names[row.label]}.seed{options.seed}" for row in rows}
    write_sheet(out / SHEET, plan.originals, {label: (each, key) for label, each in made.items()})
    return out / SHEET


def _values(options: BenchmarkOptions, plan: Plan, rows: tuple[Row, ...], missing: dict[str, str]) -> dict[str, Any]:
    """results.json: every number of the tables, and what must be known to cite or to repeat them."""
    first = rows[0].result
    models = {name: file_sha256(each.model) for name, each in zip(plan.asked, plan.spec.methods, strict=True)
              if each.model is not None}  # fmt: skip
    return {
        "format": FORMAT,
        "veilkit": __version__,
        "versions": dict(first.versions),
        "date": datetime.datetime.now(datetime.UTC).date().isoformat(),
        "machine": {"processors": len(os.sched_getaffinity(0)), "architecture": platform.machine(),
                    "system": platform.system()},
        "data": {"name": Path(options.data).resolve().name, "pictures": first.originals.pictures,
                 "people": first.people, "sha256": first.originals.sha256, "cameras": first.cameras_used,
                 "judged by": first.seen},
        "settings": as_values(options),
        "expert": {"name": first.expert.name, "sha256": first.expert.sha256},
        "judge": {"name": first.judge.name, "sha256": first.judge.sha256},
        "notes": list(plan.notes),
        "rows": [each.values(models.get(slug)) for slug, each in
                 ((slug, row) for slug, asked in plan.asked.items() for row in rows if row.label == asked.text)],
        "not audited": missing,
    }  # fmt: skip
