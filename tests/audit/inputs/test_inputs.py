"""Folders in which something is missing (benchmarks/audit_inputs.py, with the quickest recogniser)."""

from __future__ import annotations

from pathlib import Path

import pytest
from typer.testing import CliRunner

import audit_inputs
from process import Finished
from veilkit.cli import app


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return audit_inputs.people(tmp_path_factory.mktemp("people"))


def audit(*words: object) -> Finished:
    done = CliRunner().invoke(app, [*map(str, words), "--expert", "histogram", "--judge", "histogram"])
    return Finished(done.exit_code, done.output, 0.0, 0.0)


@pytest.mark.parametrize("case", audit_inputs.CASES, ids=lambda case: case.name.replace(" ", "-"))
def test_gaps_are_told_and_only_hopeless_ones_are_errors(
    case: audit_inputs.Case, source: Path, tmp_path: Path
) -> None:
    _, short = audit_inputs.check(case, source, tmp_path / "work", audit)
    assert short == []


def test_a_silent_gap_would_be_noticed(source: Path, tmp_path: Path) -> None:
    whole = audit_inputs.CASES[0]
    done, _ = audit_inputs.check(whole, source, tmp_path / "work", audit)
    wrong = audit_inputs.Case("wrong", whole.make, 2, ("no such text",))
    assert len(audit_inputs.shortcomings(wrong, done, tmp_path / "work" / "audit")) == 5
    wrong = audit_inputs.Case("wrong", whole.make, 0, (), (("judge", "raw-raw", "rank-7"),), ("chaos (AD)",))
    assert len(audit_inputs.shortcomings(wrong, done, tmp_path / "work" / "audit")) == 2
