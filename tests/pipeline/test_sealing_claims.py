"""Sealed originals attacked and killed (benchmarks/sealing.py with few attempts)."""

from __future__ import annotations

from pathlib import Path

import pytest

import sealing
from pictures import write_folder


@pytest.fixture
def source(tmp_path: Path) -> Path:
    write_folder(tmp_path / "source", 40, height=64, width=32)
    return tmp_path / "source"


def test_a_run_killed_while_sealing_ends_with_all_originals_sealed(tmp_path: Path) -> None:
    count = 240  # enough that a kill comes before the last one on a quick machine too
    write_folder(tmp_path / "many", count, height=128, width=64)
    report = sealing.kill(tmp_path / "many", tmp_path, kills=2, workers=(1,))
    assert (report.half, report.wrong, report.left) == ((), (), ())
    assert report.cut == 1
    assert any(0 < visible < count for _, visible in report.kills), report.kills


def test_no_altered_file_and_no_other_key_writes_a_byte(source: Path, tmp_path: Path) -> None:
    report = sealing.attack(source, tmp_path, flips=10, keys=5)
    assert report.opened == ()
    assert report.header > 150


@pytest.mark.parametrize("method", ["mask", "mixup"])
def test_originals_come_back(source: Path, tmp_path: Path, method: str) -> None:
    assert sealing.restored(source, tmp_path, method) == []


def test_folders_that_differ_are_told(tmp_path: Path) -> None:
    for name, content in (("one", b"1"), ("two", b"2")):
        (tmp_path / name).mkdir()
        (tmp_path / name / "same").write_bytes(b"same")
        (tmp_path / name / "other").write_bytes(content)
        (tmp_path / name / name).write_bytes(b"")
    assert sealing.differing(tmp_path / "one", tmp_path / "two") == ["one", "other", "two"]
