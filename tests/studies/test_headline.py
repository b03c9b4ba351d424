"""README's tables follow from the results that are kept with it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import claims
import headline
import study_cells
from pixelfade_study import CONFIG
from studies.comparison.plan import ENTRIES, PEOPLE
from veilkit.methods import METHODS


def row(label: str) -> dict[str, Any]:
    found = {"attack": "linkage", "metric": "rank-1", "value": [0.1, 0.0, 0.2], "chance": 0.05}
    level = {"found": found, "invalid": {}, "not made": {}, "why": ""}
    kept = {"by": "expert", "rank-1": [0.5, 0.4, 0.6], "mAP": [0.3, 0.2, 0.4]}
    return {"label": label, "kept": kept, "levels": dict.fromkeys(("L0", "L1", "L2", "L3"), level), "judge": "judge",
            "judge on originals": None}  # fmt: skip


def free() -> dict[str, Any]:
    """A row for every method for people that needs no model."""
    return {name: row(entry.label) for name, entry in ENTRIES.items()
            if entry.table == PEOPLE and not METHODS[entry.method].learns}  # fmt: skip


def test_the_readme_shows_what_was_measured() -> None:
    text = headline.readme(study_cells.published("pixelfade"), CONFIG, headline.published_rows())
    shown = f"<!-- people tables -->\n{text}\n<!-- /people tables -->"
    assert shown in claims.README.read_text(), "run `python benchmarks/headline_study.py --so-far`"


def test_the_table_of_all_methods_takes_the_place_of_pixelfades_once_it_is_complete() -> None:
    cells, rows = study_cells.published("pixelfade"), free()
    before = headline.headline(cells, CONFIG)
    assert headline.readme(cells, CONFIG, {}) == before
    for name in rows:
        fewer = {**rows, name: {"label": "x", "not run": "needs time"}}
        assert headline.readme(cells, CONFIG, fewer) == before
    text = headline.readme(cells, CONFIG, rows)
    assert text.startswith("CUHK03-NP: 200 test people")
    assert "LFW" not in text
    assert "| PRO (patches) | 50.0 [40.0, 60.0] |" in text
    faces = {
        "disguise": {"label": "Disguise", "not run": "no model"},
        "face-blur": {**row("blur"), "kept": {"found": [1, 1, 1], "moved": None}},
    }
    both = headline.readme(cells, CONFIG, {**rows, **faces})
    assert f"LFW: {headline.CONFIG.faces} people" in both
    assert "| Disguise | not run: no model |" in both
    assert "| random replacement | not run: not measured yet |" in both


def test_published_rows_are_found_by_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(claims, "RESULTS", tmp_path)
    work = tmp_path / "work"
    (work / "cells").mkdir(parents=True)
    for cell in ("people/blur", "spread"):
        held = {"cell": cell, "settings": {"people": 8}, "result": row("blur")}
        (work / "cells" / f"{cell.replace('/', '.')}.json").write_text(json.dumps(held))
    study_cells.keep(work, headline.NAME)
    assert headline.published_rows() == {"blur": row("blur")}
