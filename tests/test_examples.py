"""The scripts and notebooks of examples/ run, in small."""

from __future__ import annotations

import json
import runpy
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

import veilkit
from tests.conformance.releases import ROOT
from tests.experts.onnx_files import MEAN_COLOUR, write_onnx
from veilkit.display import Table

EXAMPLES = ROOT / "examples"
TESTED = {
    "protect_folder",
    "read_verdict",
    "data_loader",
    "own_recogniser",
    "private_gallery",
    "steward",
    "researcher",
}


def main_of(name: str) -> Callable[..., Any]:
    return runpy.run_path(str(EXAMPLES / f"{name}.py"))["main"]


def run_notebook(name: str, **changed: object) -> tuple[dict[str, Any], list[Any]]:
    """Run the code cells in a fresh namespace; `changed` replaces what the first one sets. What each cell shows."""
    namespace: dict[str, Any] = {}
    shown = []
    for cell in json.loads((EXAMPLES / f"{name}.ipynb").read_text())["cells"]:
        if cell["cell_type"] != "code":
            continue
        *lines, last = "".join(cell["source"]).splitlines()
        if last.isidentifier() or last.startswith(("veilkit.", "Image.")):
            exec("\n".join(lines), namespace)
            shown.append(eval(last, namespace))
        else:
            exec("\n".join([*lines, last]), namespace)
        if any(line.startswith("work = ") for line in cell["source"]):
            assert set(changed) <= set(namespace)
            namespace |= changed
    return namespace, shown


def test_every_example_is_tested_and_listed() -> None:
    files = [file for file in EXAMPLES.iterdir() if file.suffix in (".py", ".ipynb")]
    page = (EXAMPLES / "README.md").read_text()
    assert {file.stem for file in files} == TESTED
    assert all(f"]({file.name})" in page for file in files)


def test_outputs_are_stripped() -> None:
    for file in EXAMPLES.glob("*.ipynb"):
        for cell in json.loads(file.read_text())["cells"]:
            assert not cell.get("outputs")
            assert cell.get("execution_count") is None


def test_protect_folder(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    outcome = main_of("protect_folder")(tmp_path, people=4)
    assert outcome.protected == 16
    assert f"share:   {tmp_path / 'release'}" in capsys.readouterr().out


def test_read_verdict(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    publish = main_of("read_verdict")(tmp_path, people=4)
    told = capsys.readouterr().out
    assert (not publish) == ("do not publish" in told)
    assert "L0: " in told
    assert (tmp_path / "release.audit" / "report.html").is_file()


def test_data_loader(tmp_path: Path) -> None:
    first, second = main_of("data_loader")(tmp_path, people=4)
    assert torch.equal(first, second)


def test_own_recogniser(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("onnxruntime")
    monkeypatch.setenv("VEILKIT_HOME", str(tmp_path / "home"))
    found = main_of("own_recogniser")(tmp_path, write_onnx(tmp_path / "model.onnx", MEAN_COLOUR), people=4)
    assert list(found) == ["originals", "pixelate", "blur", "noise"]
    # Mean colours stay when cells become theirs, and noise that is cut off at black and white moves them.
    assert found["noise"] < found["originals"] == found["pixelate"]


def test_private_gallery(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("pymilvus")
    assert main_of("private_gallery")(tmp_path, people=4) > 0.5
    told = capsys.readouterr().out
    assert "epsilon 64.0 spent of 64.0; ledger and store agree: True" in told
    assert "refused: " in told


def test_the_stewards_notebook(tmp_path: Path) -> None:
    namespace, shown = run_notebook("steward", work=tmp_path, people=4)
    table, outcome, audit = shown
    assert "blur" in table
    assert outcome.protected == 16
    assert isinstance(audit, veilkit.AuditResult)
    assert all(thing._repr_html_().startswith("<table>") for thing in shown)
    assert namespace["report"].is_file()


def test_the_researchers_notebook(tmp_path: Path) -> None:
    quick = {"pixelate": {"cell": 16}, "noise": {"sigma": 0.3}}
    _, (attacks, sheet, table) = run_notebook("researcher", work=tmp_path, people=4, methods=quick)
    assert "linkage" in attacks
    assert sheet.size == (4 * 48, 3 * 96)
    assert isinstance(table, Table)
    assert list(table) == ["pixelate", "noise"]
