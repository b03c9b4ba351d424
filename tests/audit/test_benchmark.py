"""The benchmark: methods side by side on pictures of nobody, gone on with, and what it writes."""

from __future__ import annotations

import csv
import io
import json
import re
from pathlib import Path

import pytest
from typer.testing import CliRunner

from tests.audit.folders import market, plain
from tests.audit.pages import Page
from tests.experts.onnx_files import MEAN_COLOUR, write_onnx
from veilkit.audit.benchmark.expert import added_onnx
from veilkit.audit.benchmark.options import Asked, BenchmarkOptions
from veilkit.audit.benchmark.run import run_benchmark
from veilkit.audit.inputs.spec import read_spec
from veilkit.cli import app
from veilkit.datasets.folder import load_folder
from veilkit.errors import CheckpointError, ConfigError, DataError, UnknownNameError, UsageError

WEAK = ("--expert", "histogram", "--judge", "stripes", "--budget", "none", "--kind", "people")


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, Path]:
    data = plain(tmp_path_factory.mktemp("benchmark") / "data", people=10, size=(48, 24))
    done = CliRunner().invoke(
        app, ["benchmark", str(data), "--methods", "blur,pixelate:cell=8", *WEAK, "--show-originals"]
    )
    assert done.exit_code == 0, done.output
    return done.output, data.with_name("data.benchmark")


def test_it_writes_tables_a_figure_and_everything_to_cite(made: tuple[str, Path]) -> None:
    output, folder = made
    values = json.loads((folder / "results.json").read_text())
    assert [row["asked for"] for row in values["rows"]] == ["blur", "pixelate:cell=8"]
    assert values["rows"][1]["config"]["cell"] == 8
    assert values["data"] | {"pictures": 30, "people": 10} == values["data"]
    assert re.fullmatch("[0-9a-f]{64}", values["data"]["sha256"])
    assert {"veilkit", "versions", "machine", "date", "settings", "expert", "judge"} <= values.keys()
    lines = list(csv.DictReader(io.StringIO((folder / "table.csv").read_text())))
    assert [(line["method"], line["level"]) for line in lines] == [
        (method, level) for method in ("blur", "pixelate:cell=8") for level in ("L0", "L1", "L2", "L3")
    ]
    told = {(row["asked for"], each["level"]): each for row in values["rows"] for each in row["levels"]}
    for line in lines:
        each = told[line["method"], line["level"]]
        assert line["grade"] == each["grade"]
        assert float(line["found"]) == each["value"]
    markdown, latex = ((folder / f"table.{suffix}").read_text() for suffix in ("md", "tex"))
    assert "| pixelate:cell=8 |" in markdown
    assert latex.count(r"\begin{tabular}") == latex.count(r"\end{tabular}") == 1
    assert not re.search(r"(?<!\\)%", latex)  # a comment would swallow the rest of a line
    figure = (folder / "figure.svg").read_text()
    assert figure.startswith('<svg xmlns="http://www.w3.org/2000/svg"')
    assert figure.count("<circle") == 8
    assert str(folder.parent) not in (folder / "results.json").read_text() + markdown + latex
    assert "benchmark.html" in output


def test_its_page_shows_verdicts_pictures_and_leads_to_reports(made: tuple[str, Path]) -> None:
    folder = made[1]
    page = Page((folder / "benchmark.html").read_text())
    assert page.open == []
    assert len(page.all("img")) == 1
    leads = [each["href"] for each in page.all("a") if not str(each["href"]).startswith("#")]
    assert len(leads) == 2
    assert all((folder / str(lead)).is_file() for lead in leads)
    compared = (folder / "compare" / "compare.html").read_text()
    assert "1. blur" in compared
    assert "2. pixelate" in compared  # methods, not folders


def test_the_same_command_goes_on_and_a_method_more_costs_only_itself(made: tuple[str, Path]) -> None:
    folder = made[1]
    before = {file: file.stat().st_mtime_ns for file in (folder / "matrix" / "cells").iterdir()}
    data = folder.with_name("data")
    options = BenchmarkOptions(
        data, ("blur", "noise"), expert="histogram", judge="stripes", budget="none", kind="people"
    )
    done = run_benchmark(options)
    assert [row.label for row in done.rows] == ["blur", "noise"]
    after = {file: file.stat().st_mtime_ns for file in before}
    assert after == before
    assert read_spec(folder / "benchmark.toml").methods[1].method == "noise"


def test_of_the_market_layout_the_test_part_is_protected(tmp_path: Path) -> None:
    data = market(tmp_path / "data", people=12)
    options = BenchmarkOptions(data, ("pixelate",), expert="histogram", judge="stripes", budget="none", people=8)
    done = run_benchmark(options)
    assert done.values["data"]["people"] == 8
    chosen = sorted(file.name for file in (done.folder / "originals-8-seed0").rglob("*.png"))
    assert len(chosen) == 24
    assert len({name[:4] for name in chosen}) == 8
    assert not list((done.folder / "originals-8-seed0" / "bounding_box_train").iterdir())
    with pytest.raises(DataError, match="expected at least 13 people"):
        run_benchmark(BenchmarkOptions(data, ("pixelate",), expert="histogram", judge="stripes", people=13))


def test_an_onnx_file_becomes_an_expert_once_by_its_best_preprocessing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("onnxruntime")
    monkeypatch.setenv("VEILKIT_HOME", str(tmp_path / "home"))
    split = load_folder(plain(tmp_path / "data", people=4, size=(48, 24)))
    file = write_onnx(tmp_path / "Mean Colour.onnx", MEAN_COLOUR)
    name, how = added_onnx(file, split, normalisation=None, size=None)
    assert name == "mean-colour"
    assert "of 4 people" in how
    assert added_onnx(file, split, normalisation=None, size=None)[0] == name
    unlabelled = load_folder(tmp_path / "data", "none")
    with pytest.raises(ConfigError, match="--normalisation"):
        added_onnx(write_onnx(tmp_path / "o.onnx", MEAN_COLOUR), unlabelled, normalisation=None, size=None)


def test_what_is_wrong_is_answered_before_any_work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)  # where no models lie
    data = plain(tmp_path / "data", people=2)
    for methods, more, error, match in (
        (("blurr",), {}, UnknownNameError, "did you mean 'blur'"),
        ((), {}, UsageError, "expected the methods to compare"),
        (("blur", "blur"), {}, UsageError, "given twice"),
        (("pixelate:cell=8:a:b",), {}, UsageError, "METHOD:PRESET"),
        (("blur",), {"expert": "nobody.onnx"}, CheckpointError, "no such model file"),
        (("blur",), {"model": ("blur",)}, UsageError, "METHOD=FILE"),
        (("blur",), {"out": data / "inside"}, UsageError, "apart from the pictures"),
        (("privacyreid",), {}, UsageError, "must learn before it protects"),
    ):
        with pytest.raises(error, match=match):
            run_benchmark(BenchmarkOptions(data, methods, **more))
    assert Asked.read("disguise:photoreal").preset == "photoreal"
