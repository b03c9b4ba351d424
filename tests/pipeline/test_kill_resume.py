"""Killed and resumed (benchmarks/kill_resume.py with few kills)."""

from __future__ import annotations

from pathlib import Path

import kill_resume
import process


def test_a_run_killed_several_times_ends_like_an_unbroken_one(tmp_path: Path) -> None:
    report = kill_resume.measure(tmp_path, kills=3, count=60, workers=1)
    assert report.partial == ()
    assert report.differing == ()
    assert any(0 < visible < 60 for _, visible in report.kills), report.kills


def test_unfinished_files_in_the_scratch_folder_are_not_part_of_a_release(tmp_path: Path) -> None:
    (tmp_path / ".veilkit").mkdir()
    (tmp_path / ".veilkit" / "1.part").write_bytes(b"half")
    (tmp_path / "a.png").write_bytes(b"whole")
    assert process.contents(tmp_path) == {"a.png": b"whole"}
