"""An attack that is added by the guide's steps alone, and finds everybody, is found wherever a reader may look."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from typer.testing import CliRunner

import veilkit.attacks
from tests.attacks.targets import noise, target
from tests.audit.folders import changed, plain
from tests.conformance import test_attacks as conformance
from tests.conformance.guide import GUIDES, guide_attack, guide_code
from veilkit.attacks import ATTACKS, run_gated
from veilkit.audit import run_audit
from veilkit.audit.report.compare_report import as_html, as_markdown
from veilkit.audit.report.comparison import compare, read_audits
from veilkit.audit.report.terminal import lines
from veilkit.audit.result import read_audit
from veilkit.audit.verdicts.verdict import Grade
from veilkit.cli import app
from veilkit.types import Level

NAME = "thumbnails"
SENTENCE = "Comparing thumbnails finds the very original of a protected picture 100 % of the time"
TITLE = "Protected pictures linked by their thumbnails"


@pytest.fixture(autouse=True)
def planted(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    """The guide's file, and the one line in the table."""
    module = guide_attack(tmp_path_factory.mktemp("attacks"), monkeypatch)
    monkeypatch.setitem(ATTACKS._places._entries, NAME, f"{module.__name__}:Thumbnails")


def pixelated(pixels: np.ndarray, index: int) -> np.ndarray:
    image = Image.fromarray(pixels)
    return np.asarray(image.resize((8, 8), Image.Resampling.BOX).resize(image.size, Image.Resampling.NEAREST))


@pytest.fixture
def audited(tmp_path: Path) -> Path:
    """The folder of an audit of pixelated pictures, with the planted attack and another that finds less."""
    originals = plain(tmp_path / "o")
    release = changed(originals, tmp_path / "p", pixelated)
    run_audit(
        originals, release, expert="histogram", judge="histogram", attacks=[NAME, "own_original"], out=tmp_path / "a"
    )
    return tmp_path / "a"


def test_it_is_found_in_every_output_of_an_audit(audited: Path) -> None:
    result = read_audit(audited / "audit.json")
    ignorant = result.verdicts[0]
    assert (ignorant.level, ignorant.grade) == (Level.L0, Grade.BROKEN)
    assert ignorant.worst is not None
    assert (ignorant.worst.attack, ignorant.worst.value, ignorant.worst.invalid) == (NAME, 1.0, ())
    assert ignorant.text.startswith(SENTENCE)
    first = result.summary[0]  # it undoes the protection: nothing is told before
    assert (first.title, first.figure, first.invalid) == (TITLE, "100 %", ())
    assert first.text.startswith(SENTENCE)
    assert first.text.endswith("This protection is not safe.")
    values = json.loads((audited / "audit.json").read_text())
    assert NAME in [each["attack"] for each in values["attacks"] if each["applicable"] and not each["invalid"]]
    assert values["summary"][0]["title"] == TITLE
    for output in ("report.html", "audit.md"):
        text = (audited / output).read_text().replace("\u00a0", " ")
        for part in (SENTENCE, TITLE, NAME, ATTACKS[NAME].summary if output == "report.html" else "broken"):
            assert part in text, (output, part)
    assert any(line.startswith(f"L0 (ignorant): BROKEN. {SENTENCE}") for line in lines(result))


def test_it_is_compared(audited: Path) -> None:
    found = compare(read_audits([audited, audited]))
    ignorant = found.levels[0]
    assert NAME in ignorant.attacks
    assert {verdict.attack for verdict in ignorant.worst.values()} == {NAME}
    for page in (as_html(found), as_markdown(found)):
        assert NAME in page


def test_it_passes_its_gates_and_finds_nothing_in_noise() -> None:
    clean, noisy = run_gated(ATTACKS[NAME], target()), run_gated(ATTACKS[NAME], target(noise()))
    assert (clean.invalid, clean.scores[0].value) == ((), 1.0)
    assert noisy.scores[0].value < 0.3
    assert clean.details["gates"]["on originals"] == 1.0


@pytest.mark.parametrize(
    "check",
    [
        conformance.test_it_says_what_it_is,
        conformance.test_its_scores_have_role_direction_interval_and_note,
        conformance.test_the_same_target_gives_the_same_evidence,
        conformance.test_the_target_is_untouched,
        conformance.test_without_what_it_needs_it_is_not_applicable,
        conformance.test_it_passes_its_gates_where_people_can_be_recognised,
        conformance.test_it_finds_nothing_in_noise_and_something_in_the_originals,
    ],
)
def test_it_conforms(check: Callable[[str], None]) -> None:
    check(NAME)


def test_the_command_line_lists_and_shows_it() -> None:
    listed = CliRunner().invoke(app, ["attacks", "list"]).stdout
    assert f"{NAME} " in listed
    shown = CliRunner().invoke(app, ["attacks", "show", NAME]).stdout
    assert "level: L0" in shown
    table = CliRunner().invoke(app, ["attacks", "list", "--markdown"]).stdout
    assert f"| `{NAME}` | L0 | {ATTACKS[NAME].summary} |" in table


def test_the_guide_says_how_much_is_touched() -> None:
    _, code = guide_code("add-an-attack.md")
    guide = (GUIDES / "add-an-attack.md").read_text()
    lines_of_code = len(code.splitlines())
    assert f"One new file of {lines_of_code} lines and one line in a table" in guide
    table = Path(veilkit.attacks.__file__).read_text()
    for attack in (ATTACKS["own_original"], ATTACKS["linkage"]):
        assert len(re.findall(rf"\b{attack.__name__}\b", table)) == 1  # a line of the table
