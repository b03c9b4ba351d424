"""A method that is added by the guide's steps alone is found wherever a reader may look."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from typer.testing import CliRunner

import veilkit
import veilkit.methods
from tests.conformance import test_methods as conformance
from tests.conformance.guide import GUIDES, guide_code, guide_method
from tests.conftest import tree
from veilkit.audit import run_audit
from veilkit.cli import app
from veilkit.lookup import LazyLookup
from veilkit.methods import METHODS
from veilkit.methods.table import methods

NAME = "sepia"


@pytest.fixture(autouse=True, scope="module")
def planted(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """The guide's file, and the line of the table that the guide shows."""
    with pytest.MonkeyPatch.context() as monkeypatch:
        guide_method(tmp_path_factory.mktemp("methods"), monkeypatch)
        assert isinstance(METHODS, LazyLookup)
        line = re.search(r"^    \(\"(\w+)\", \"([\w.]+:\w+)\"\),$", (GUIDES / "add-a-method.md").read_text(), re.M)
        assert line
        monkeypatch.setitem(METHODS._places._entries, line[1], line[2])
        yield
    conformance.make.cache_clear()


@pytest.mark.parametrize(
    "check",
    [
        conformance.test_the_table_has_it_under_its_own_name,
        conformance.test_shape_range_and_pairing,
        conformance.test_the_input_is_untouched,
        conformance.test_the_same_randomness_gives_the_same_result,
        conformance.test_batch_mates_do_not_matter,
        conformance.test_one_pixel_and_odd_sizes,
        conformance.test_presets_and_settings,
    ],
)
def test_it_conforms(check: Callable[[str], None]) -> None:
    check(NAME)


def test_it_is_saved_and_loaded(tmp_path: Path) -> None:
    conformance.test_save_and_load(NAME, tmp_path)


def test_the_command_line_lists_shows_and_runs_it(folder: Path, tmp_path: Path) -> None:
    runner = CliRunner()
    assert re.search(rf"^{NAME} +pictures in shades of brown$", runner.invoke(app, ["methods", "list"]).stdout, re.M)
    assert "strength" in runner.invoke(app, ["methods", "show", NAME]).stdout
    table = runner.invoke(app, ["methods", "list", "--markdown"]).stdout
    assert f"| `{NAME}` | {METHODS[NAME].summary} |" in table
    options = ["--method", NAME, "--set", "strength=0.5", "--workers", "0", "--seed", "3"]
    done = runner.invoke(app, ["protect", str(folder), str(tmp_path / "out"), *options])
    assert done.exit_code == 0, done.output
    manifest = json.loads((tmp_path / "out" / "manifest.json").read_text())
    assert manifest["method"] == NAME
    assert manifest["config"] == {"strength": 0.5}


def test_python_and_the_audit_know_it(folder: Path, tmp_path: Path) -> None:
    assert NAME in repr(methods())
    for number in (1, 2):
        outcome = veilkit.protect(folder, tmp_path / f"{number}", NAME, seed=3, workers=0)
        assert (outcome.protected, outcome.refused) == (12, {})
    assert tree(tmp_path / "1") == tree(tmp_path / "2")
    run_audit(
        folder, tmp_path / "1", seed=3, expert="histogram", judge="histogram", attacks=["own_original"],
        out=tmp_path / "audit",
    )  # fmt: skip
    values = json.loads((tmp_path / "audit" / "audit.json").read_text())
    assert values["release"]["method"] == NAME
    assert "own_original" in [each["attack"] for each in values["attacks"] if each["applicable"]]
    assert NAME in (tmp_path / "audit" / "report.html").read_text()


def test_the_guide_says_how_much_is_touched() -> None:
    _, code = guide_code("add-a-method.md")
    guide = (GUIDES / "add-a-method.md").read_text()
    lines_of_code = len(code.splitlines())
    assert f"One new file of {lines_of_code} lines and one line in a table" in guide
    table = Path(veilkit.methods.__file__).read_text()
    assert len(re.findall(r"\bPixelate\b", table)) == 1  # a method is one line there
