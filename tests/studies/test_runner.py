"""The runner of studies: its options, what is published of a run, and that an unfit run publishes nothing."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from benchmarks import claims
from studies.controls.study import ControlsStudy
from studies.shared import publishing, runner
from studies.shared.cells import read_cells, read_settings
from studies.shared.publishing import placed, render
from studies.shared.results import Results, summary
from studies.shared.runner import STUDIES
from studies.shared.study import ROOT, by_kind
from tests.studies.harness import TINY_STUDIES, Done
from veilkit.errors import DataError, DestinationError, UnknownNameError, UsageError

Find = Callable[[str], Done]


def words(config: Any) -> list[str]:
    """A configuration as --set takes it."""
    return [f"--set=methods={','.join(config.methods)}", f"--set=seed={config.seed}"]


def test_help_and_the_list_import_nothing_heavy() -> None:
    script = "import sys; from studies.shared.runner import main; main(['--list']); print('torch' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True, check=True)
    lines = done.stdout.splitlines()
    assert lines[-1] == "False"
    assert [line.split()[0] for line in lines[:-1]] == list(STUDIES)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (["pixelfde"], "did you mean 'pixelfade'"),
        ([], "name a study"),
        (["controls", "--set", "methods"], "key=value"),
        (["controls", "--set", "method=blur"], "methods"),
        (["controls", "--only", "control/blurr"], "no such cell: control/blurr"),
        (["controls", "--data", "nowhere"], "no folder nowhere"),
        (["fro-faces", "--init", "nowhere.safetensors"], "no file nowhere.safetensors"),
        (["controls", "--so-far", "--set", "seed=1"], "publishes the study as it is"),
    ],
)
def test_a_wrong_command_is_answered_in_a_line(
    given: list[str],
    message: str,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("VEILKIT_DATA", raising=False)
    assert runner.main(given) == 2
    told = capsys.readouterr().err
    assert told.startswith("Error: ")
    assert message in told


def test_without_data_or_judge_it_says_what_to_give(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("VEILKIT_DATA", "VEILKIT_WEIGHTS"):
        monkeypatch.delenv(name, raising=False)
    assert runner.main(["fro-faces", "--init", "none", "--work", str(tmp_path)]) == 2
    assert "set VEILKIT_DATA" in capsys.readouterr().err
    assert runner.main(["fro", "--init", "none", "--data", str(tmp_path), "--work", str(tmp_path / "work")]) == 2
    assert "osnet_x0_25_msmt17.onnx" in capsys.readouterr().err


def test_inputs_may_be_left_out_or_repeated() -> None:
    from studies.disguise.study import STUDY

    given = ["disguise", "--judge", "a", "--judge", "b", "--start", "none", "--set", "people=5"]
    arguments = runner._parser(STUDY).parse_args(given)
    found = runner._inputs(STUDY, arguments)
    assert (found["judge"], found["start"], found["model"]) == (
        ("a", "b"),
        None,
        ("models/lfw_disguise.safetensors",),
    )
    assert runner._config(STUDY, arguments) == replace(STUDY.published, people=5)
    assert "verified/ved/b" in STUDY.cells(STUDY.published, found)


@pytest.mark.slow
def test_the_command_goes_on_with_the_same_study_and_publishes_nothing_of_other_options(
    done: Find, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    made, before = done("controls"), Results.load(done("controls").study.folder)
    monkeypatch.setattr(publishing, "record_claims", lambda *_, **__: pytest.fail("claimed"))
    times = made.times()
    given = ["controls", "--data", str(made.data), "--work", str(made.folder), "--workers", "0", "--threads", "1"]
    given += [word for name, value in made.inputs().items() for word in (f"--{name}", value)]
    assert runner.main([*given, *words(TINY_STUDIES["controls"].config)]) == 0
    assert f"The tables are in {made.folder / 'report.md'}" in capsys.readouterr().out
    assert made.times() == times
    assert Results.load(made.study.folder) == before


class Published(ControlsStudy):
    """The study of controls with a page of its own."""


@pytest.fixture
def published(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Published:
    study = Published()
    (tmp_path / "page").mkdir()
    marks = [f"<!-- {name} tables -->\n<!-- /{name} tables -->" for name in ("controls", "controls claims")]
    (tmp_path / "page" / "README.md").write_text("before\n" + "\n".join(marks) + "\nafter\n")
    monkeypatch.setattr(study, "folder", tmp_path / "page", raising=False)
    monkeypatch.setattr(study, "published", TINY_STUDIES["controls"].config, raising=False)
    monkeypatch.setattr(publishing, "ROOT", tmp_path)
    monkeypatch.setattr(claims, "FILE", tmp_path / "claims.json")
    return study


@pytest.mark.slow
def test_a_finished_run_writes_results_tables_and_claims(published: Published, done: Find, tmp_path: Path) -> None:
    made = done("controls")
    results = publishing.publish(published, made.folder, record=True, computed=True)
    assert set(results.cells) == {"control/blur", "control/mask"}
    assert Results.load(published.folder) == results
    assert results.cells["control/blur"] == made.cell("control/blur")
    assert results.settings == read_settings(made.folder)
    page = (published.folder / "README.md").read_text()
    assert "| blur |" in page
    assert (
        "| Defined figures of the table of controls without a value or an interval | 0 figures | == 0 | yes |" in page
    )
    rows = claims.load()
    assert [row["id"] for row in rows] == ["controls-table"]
    old = [{**row, "date": "2000-01-01"} for row in rows]
    claims.FILE.write_text(json.dumps(old))
    publishing.publish(published, tmp_path / "nothing", record=True, computed=False)
    assert claims.load() == old  # what did not change keeps its date
    publishing.publish(published, made.folder, record=True, computed=True)
    assert claims.load() == rows


def test_what_was_never_published_says_so(published: Published, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="never published"):
        publishing.publish(published, tmp_path / "nothing", record=True, computed=False)


def test_cells_of_other_options_are_refused(tmp_path: Path) -> None:
    (tmp_path / "cells").mkdir()
    file = tmp_path / "cells" / "a.b.json"
    file.write_text(json.dumps({"cell": "a/b", "settings": {"people": 8, "judge": "x"}, "result": {"x": 1}}))
    assert read_cells(tmp_path, {"people": 8, "experts": ["more"]}) == {"a/b": {"x": 1}}
    with pytest.raises(DataError, match=r"people differ.*its own folder"):
        read_cells(tmp_path, {"people": 9})


def test_values_of_single_pictures_are_not_published() -> None:
    cell = {"scores": {"SSIM": [0.1, 0.0, 0.2]}, "each": list(range(800)), "inner": [{"ROC": [[0, 1]] * 30, "n": 3}]}
    assert summary(cell) == {"scores": {"SSIM": [0.1, 0.0, 0.2]}, "inner": [{"n": 3}]}


def test_results_come_back_as_they_were(tmp_path: Path) -> None:
    results = Results(
        "x", "2026-01-02", 3, "few", [{"people": 8}], {"b": {"v": None}, "a": {"v": 1.5}}, {"t": "| a |\n| b |"}
    )
    results.save(tmp_path)
    assert Results.load(tmp_path) == results
    assert len((tmp_path / "results.json").read_text().splitlines()) < 20
    assert Results.load(tmp_path / "nowhere") is None


def test_tables_go_on_every_page_that_has_a_place_and_on_one_at_least(tmp_path: Path) -> None:
    pages = [tmp_path / "one.md", tmp_path / "two.md", tmp_path / "three.md"]
    for page in pages[:2]:
        page.write_text("a\n<!-- t tables -->\nold\n<!-- /t tables -->\nz\n")
    assert render({"t": "new"}, pages) == pages[:2]
    assert render({"t": "new"}, pages) == []
    assert pages[1].read_text() == "a\n<!-- t tables -->\nnew\n<!-- /t tables -->\nz\n"
    render({"front": "x"}, pages, optional=("front",))
    with pytest.raises(DestinationError, match="no page has a place"):
        render({"front": "x"}, pages)
    with pytest.raises(DestinationError, match="no place between"):
        placed("<!-- t tables -->", "t", "new")


def test_cells_are_computed_by_their_names() -> None:
    asked: list[tuple[str, ...]] = []
    kinds = {"stage2": lambda *given: asked.append(given) or {}, "pool": dict}
    by_kind("stage2/stage1/privunit/16", kinds)
    assert asked == [("stage1", "privunit", "16")]
    assert by_kind("pool", kinds) == {}
    with pytest.raises(UnknownNameError, match="did you mean 'stage2'"):
        by_kind("stage22/x", kinds)
