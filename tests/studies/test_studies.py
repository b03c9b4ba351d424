"""What holds for every study: cells, report, resuming, refusal, and that what is published is what is shown."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from benchmarks import claims
from studies.shared.publishing import claim_rows, claims_table, command, placed, tables_of
from studies.shared.results import LONGEST, Results
from studies.shared.runner import STUDIES, load_study
from studies.shared.study import ROOT
from tests.studies.harness import TINY_STUDIES, Done
from veilkit.errors import ConfigError, DataError, UnknownNameError, UsageError

Find = Callable[[str], Done]
EVERY = pytest.mark.parametrize("name", sorted(STUDIES))
REFUSED: list[tuple[str, dict[str, Any], str]] = [
    ("pixelfade", {"methods": ("blur",)}, "must hold pixelfade"),
    ("pixelfade", {"methods": ("pixelfade", "blurr")}, "did you mean 'blur'"),
    ("pixelfade", {"attacks": ("recover",)}, "unknown attack"),
    ("pixelfade", {"people": 3, "grid_people": 2}, "at least 4"),
    ("pixelfade", {"grid_people": 6}, "at most people"),
    ("pixelfade", {"grid_steps": (8,)}, "values of the original would stay"),
    ("pixelfade", {"noise_weights": (1.5,)}, "noise_weight must be between"),
    ("pixelfade", {"experts": ("a/x.safetensors", "b/x.safetensors")}, "different names"),
    ("fro", {"scales": (0.5,)}, r"1\.0"),
    ("fro", {"held_back": -1}, "must not be negative"),
    ("fro-faces", {"folds": (8,)}, "two or more"),
    ("fro-faces", {"people": 1}, "people >= 2"),
    ("fro-faces", {"fewest": 13}, "fewest <= shots"),
    ("fro-faces", {"pairs": 0}, "pairs >= 1"),
    ("disguise", {"attacks": ("recover",)}, "unknown attack"),
    ("disguise", {"compared": ("averaging",)}, "runs Disguise once more"),
    ("disguise", {"folds": (8,)}, "two or more"),
    ("disguise", {"public_people": 3}, "at least 4"),
    ("disguise", {"shots": 0}, "at least 1"),
    ("disguise", {"noises": (0.0,)}, "positive scales"),
    ("disguise", {"trained": ("ved@8",)}, "first table"),
    ("disguise", {"main": "noise"}, "opp, mlp or ved"),
    ("privacyreid", {"desensitise": ()}, "at least one of blur, pixelate and noise"),
    ("privacyreid", {"attacks": ("recover",)}, "unknown attack"),
    ("privacyreid", {"compared": ("stolen_decoder",)}, "have no decoder"),
    ("privacyreid", {"public_people": 3}, "at least 4"),
    ("privacyreid", {"queries": 0}, "at least 1"),
    ("privacyreid", {"shown": 6}, "at most people"),
    ("pepr", {"models": ("stage1",)}, "models must hold baseline"),
    ("pepr", {"models": ("baseline", "stage3")}, "unknown encoder"),
    ("pepr", {"mechanisms": ("paper",)}, "sound ones"),
    ("pepr", {"rivals": ("federated",)}, "rivals must be some of"),
    ("pepr", {"people": 3}, "people must be at least 8"),
    ("pepr", {"draws": 0}, "at least 1"),
    ("controls", {"methods": ("blurr",)}, "did you mean"),
    ("comparison", {"methods": ("blurr",)}, "did you mean"),
    ("comparison", {"attacks": ("recover",)}, "no attack"),
    ("comparison", {"people": 7}, "at least 8"),
    ("comparison", {"shots": 1}, "shots"),
    ("comparison", {"side": 8}, "side must be"),
]


def test_every_study_has_a_tiny_one() -> None:
    assert set(TINY_STUDIES) == set(STUDIES)


@pytest.mark.slow
@EVERY
def test_a_run_writes_every_cell_its_report_and_its_figures(name: str, done: Find) -> None:
    made = done(name)
    wanted = set(made.study.cells(TINY_STUDIES[name].config, made.inputs()))
    assert wanted <= made.cells()
    text = made.report
    for words in (made.study.title, *TINY_STUDIES[name].words):
        assert words in text, words
    drawn = set(re.findall(r"\]\(([\w.-]+\.svg)\)", text))
    assert drawn == {file.name for file in made.folder.glob("*.svg")}
    seen = text + "".join(file.read_text() for file in (made.folder / "cells").iterdir())
    assert not re.search(r"\b(N\d|[a-i])_000", seen)  # nobody's file


@pytest.mark.slow
@EVERY
def test_a_second_run_computes_nothing(name: str, done: Find) -> None:
    made = done(name)
    before = made.times()
    with made.run() as run:
        made.study.compute(run)
    assert made.times() == before


@pytest.mark.slow
@EVERY
def test_a_folder_of_other_options_is_refused(name: str, done: Find) -> None:
    made = done(name)
    changed = next(iter(TINY_STUDIES[name].other))
    with (
        made.run(**TINY_STUDIES[name].other) as run,
        pytest.raises(DataError, match=rf"{changed} differ.*its own folder"),
    ):
        made.study.compute(run)


@pytest.mark.parametrize(("name", "changes", "message"), REFUSED)
def test_a_wrong_option_is_refused_before_any_work(name: str, changes: dict[str, Any], message: str) -> None:
    with pytest.raises((ConfigError, UnknownNameError, UsageError), match=message):
        replace(TINY_STUDIES[name].config, **changes)


@EVERY
def test_published_results_are_of_the_published_options(name: str) -> None:
    study = load_study(name)
    results = Results.load(study.folder)
    assert results is not None
    assert (results.study, results.seed) == (name, study.published.seed)
    if results.cells:
        assert results.scale == study.scale(results.cells, study.published)
    options = json.loads(json.dumps(study.settings(study.published)))
    for held in results.settings:
        assert {key: held[key] for key in options if key in held} == {k: v for k, v in options.items() if k in held}
    longest = [value for cell in results.cells.values() for value in _lists(cell)]
    assert max(map(len, longest), default=0) <= LONGEST


@EVERY
def test_pages_show_what_was_published(name: str) -> None:
    study = load_study(name)
    results = Results.load(study.folder)
    assert results is not None
    page = (study.folder / "README.md").read_text(encoding="utf-8")
    everywhere = page + "".join(file.read_text(encoding="utf-8") for file in study.pages)
    tables = {**tables_of(study, results), f"{name} claims": claims_table(study)}
    for place, table in tables.items():
        if place not in study.elsewhere:
            assert f"<!-- {place} tables -->\n{table}\n<!-- /" in everywhere, f"python -m studies {name} --so-far"
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    for place in tables:
        if f"<!-- {place} tables -->" in readme:
            assert placed(readme, place, tables[place]) == readme, f"python -m studies {name} --so-far"
    for figure in re.findall(r"\]\(([\w.-]+\.(?:svg|json))\)", page):
        assert (study.folder / figure).is_file(), figure


@EVERY
def test_claims_follow_from_what_was_published(name: str) -> None:
    study = load_study(name)
    results = Results.load(study.folder)
    assert results is not None
    held = {row["id"]: row for row in claims.load() if row["command"] == command(study)}
    assert held
    if results.cells:
        rows = {row["id"]: row for row in claim_rows(study, results.cells)}
        assert set(rows) == set(held)
        for row_id, row in rows.items():
            assert {key: held[row_id][key] for key in row} == row


@EVERY
def test_nothing_is_shown_or_claimed_of_no_cells(name: str) -> None:
    study = load_study(name)
    for place, table in study.tables({}, study.published).items():
        assert "|" not in table or place == "comparison", place
    assert study.withheld({}, study.published) == []
    if name != "comparison":  # which claims that no row is missing
        assert study.claims({}, study.published) == []


def test_commands_of_claims_exist() -> None:
    for row in claims.load():
        words = row["command"].split()
        if "-m" in words:
            assert words[words.index("-m") + 1] == "studies"
            assert words[words.index("-m") + 2] in STUDIES
        else:
            script = next(word for word in words if word.endswith(".py"))
            assert Path(ROOT, script).is_file(), row["id"]


def _lists(value: Any) -> list[list[Any]]:
    if isinstance(value, dict):
        return [found for each in value.values() for found in _lists(each)]
    return [value, *(found for each in value for found in _lists(each))] if isinstance(value, list) else []
