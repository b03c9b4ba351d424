"""The auditor is audited (benchmarks/audit_mutants.py): it names planted leaks, and is silent on honest releases."""

from __future__ import annotations

from pathlib import Path

import pytest

import audit_mutants
from audit_mutants import HONEST, MUTANTS, SIZE, Mutant, audited, caught
from tests.audit.folders import plain
from veilkit.audit.alarms import ALARMS


@pytest.fixture
def originals(tmp_path: Path) -> Path:
    return plain(tmp_path / "o", people=10, shots=2, size=(SIZE[1], SIZE[0]))


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.name.replace(" ", "-"))
def test_a_mutant_is_caught_by_name(mutant: Mutant, originals: Path, tmp_path: Path) -> None:
    work = tmp_path / "work"
    work.mkdir()
    yes, alarms = caught(mutant, originals, work)
    assert yes, alarms
    assert mutant.alarm in ALARMS


@pytest.mark.parametrize("kind", [kind for kind in sorted(HONEST) if kind != "patches"])  # which takes its time
def test_an_honest_release_raises_no_alarm(kind: str, originals: Path, tmp_path: Path) -> None:
    result = audited(originals, HONEST[kind](originals, tmp_path / "r"), tmp_path / "a")
    assert result.alarms == ()


def test_there_are_eight_and_all_alarms_are_told_in_words(originals: Path, tmp_path: Path) -> None:
    assert len(MUTANTS) == 8
    release = audit_mutants.changed(originals, tmp_path / "r", lambda pixels, _: pixels)
    result = audited(originals, release, tmp_path / "a")
    assert [alarm.name for alarm in result.alarms] == ["unchanged"]
    assert "20 of 20 protected pictures" in result.alarms[0].text
    for file in ("report.html", "audit.md"):
        assert result.alarms[0].text in (tmp_path / "a" / file).read_text(), file
