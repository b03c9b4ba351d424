"""Cells of an audit: computed once, found again, computed again where anything they depend on changed."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

import audit_resume
from tests.attacks.learners import Recorder
from tests.audit.folders import blur, changed, noise, plain
from tests.methods.experts import tiny_expert_file
from veilkit.attacks.learned import retrained
from veilkit.audit import AuditResult, read_audit, run_audit
from veilkit.audit.cells.store import CellFiles
from veilkit.errors import CheckpointError, UsageError
from veilkit.experts.builtin import HistogramEmbedder
from veilkit.experts.names import file_sha256

QUICK = ["stock_recogniser", "linkage", "own_original", "mean_image"]


def audit(originals: Path, protected: Path, **options: object) -> AuditResult:
    given = {"expert": "histogram", "judge": "histogram", "attacks": QUICK, **options}
    return run_audit(originals, protected, **given)  # type: ignore[arg-type]


def stamps(folder: Path) -> dict[str, int]:
    return {file.stem: file.stat().st_mtime_ns for file in (folder / "cells").glob("*.json")}


@pytest.fixture
def folders(tmp_path: Path) -> tuple[Path, Path]:
    originals = plain(tmp_path / "o")
    return originals, changed(originals, tmp_path / "p", blur)


def test_a_cell_holds_all_that_its_numbers_depend_on(folders: tuple[Path, Path], tmp_path: Path) -> None:
    result = audit(*folders, out=tmp_path / "a", draw_seed=3)
    held = json.loads((tmp_path / "a" / "cells" / "attack-linkage.json").read_text())
    assert (held["release"], held["dataset"], held["attack"], held["seed"]) == ("p", "o", "linkage", 3)
    assert held["facts"]["inputs"] == {"originals": result.originals.sha256, "protected": result.protected.sha256}
    assert held["facts"]["versions"].keys() == {"veilkit", "torch", "numpy"}
    score = held["result"]["scores"][0]
    assert score["role"] == "privacy"
    assert score["low"] <= score["value"] <= score["high"]
    assert held["result"]["details"]["gates"]["metric"] == "rank-1"
    assert 0.0 <= held["processor_seconds"] < 60.0
    assert "of a processor with its gates" in (tmp_path / "a" / "report.html").read_text()


def test_cells_are_found_again_and_only_what_changed_is_computed(folders: tuple[Path, Path], tmp_path: Path) -> None:
    out = tmp_path / "a"
    first = audit(*folders, out=out)
    before = stamps(out)
    assert audit(*folders, out=out) == first
    assert stamps(out) == before
    (out / "cells" / "attack-linkage.json").unlink()
    (out / "cells" / "attack-mean_image.json").write_text("{ damaged")
    assert audit(*folders, out=out) == first
    assert {name for name, stamp in stamps(out).items() if stamp != before[name]} == {
        "attack-linkage", "attack-mean_image"}  # fmt: skip
    before = stamps(out)
    other = audit(*folders, out=out, draw_seed=1)
    assert all(stamp != before[name] for name, stamp in stamps(out).items())
    assert other == audit(*folders, out=tmp_path / "fresh", draw_seed=1)


def test_changed_pictures_are_measured_again(folders: tuple[Path, Path], tmp_path: Path) -> None:
    originals, release = folders
    audit(originals, release, out=tmp_path / "a")
    changed(originals, release, noise)
    assert audit(originals, release, out=tmp_path / "a") == audit(originals, release, out=tmp_path / "fresh")


def test_another_budget_concerns_only_attackers_who_learn(folders: tuple[Path, Path], tmp_path: Path) -> None:
    names = [*QUICK, "identification"]
    audit(*folders, out=tmp_path / "a", attacks=names)
    before = stamps(tmp_path / "a")
    result = audit(*folders, out=tmp_path / "a", attacks=names, learn=2)
    assert {name for name, stamp in stamps(tmp_path / "a").items() if stamp != before[name]} == {
        "attack-identification"}  # fmt: skip
    evidence = result.evidence("identification")
    assert evidence is not None
    assert evidence.applicable


def test_another_start_concerns_only_the_attacker_who_starts_from_it(
    folders: tuple[Path, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    recorder = Recorder()
    monkeypatch.setattr(retrained, "train_on", recorder)
    options = {"out": tmp_path / "a", "attacks": ["linkage", "identification", "retrained"], "learn": 2}
    audit(*folders, **options)
    assert recorder.starts == [None] * 3  # the release and two gates
    before, start = stamps(tmp_path / "a"), Path(tiny_expert_file("mobilenetv2"))
    result = audit(*folders, **options, start=start)
    assert recorder.starts[3:] == [start] * 3
    assert {name for name, stamp in stamps(tmp_path / "a").items() if stamp != before[name]} == {"attack-retrained"}
    held = json.loads((tmp_path / "a" / "cells" / "attack-retrained.json").read_text())
    assert held["facts"]["start"] == result.config["start_sha256"] == file_sha256(start)
    assert held["result"]["details"]["started from"] == file_sha256(start)[:12]
    for name in ("audit.md", "report.html"):
        text = (tmp_path / "a" / name).read_text()
        assert "--start WEIGHTS" in text
        assert file_sha256(start) in text
        assert str(start.parent) not in text
    assert audit(*folders, **options, start=str(start)) == result
    assert len(recorder.starts) == 6


def test_a_wrong_start_is_told_before_anything_is_written(folders: tuple[Path, Path], tmp_path: Path) -> None:
    (tmp_path / "text.safetensors").write_text("no weights")
    for start, told in (("nowhere", "no such model file"), ("text.safetensors", "text.safetensors")):
        with pytest.raises(CheckpointError, match=told):
            audit(*folders, out=tmp_path / "a", start=tmp_path / start)
    assert not (tmp_path / "a").exists()


@pytest.mark.slow
def test_workers_leave_the_same_cells(folders: tuple[Path, Path], tmp_path: Path) -> None:
    results = [audit(*folders, out=tmp_path / f"w{count}", workers=count) for count in (1, 2)]
    assert results[0] == results[1]
    one, two = (
        {file.name: json.loads(file.read_text()) for file in (tmp_path / name / "cells").iterdir()}
        for name in ("w1", "w2")
    )
    for each in (*one.values(), *two.values()):
        assert each.pop("processor_seconds", 0.0) >= 0.0  # all but the time that it took
    assert one == two


def test_workers_need_recognisers_that_can_be_sent(folders: tuple[Path, Path], tmp_path: Path) -> None:
    class Local(HistogramEmbedder):
        pass

    with pytest.raises(UsageError, match="worker processes must be sent"):
        audit(*folders, out=tmp_path / "a", workers=2, judge=Local())
    with pytest.raises(UsageError, match="workers must be at least 1, but got 0"):
        audit(*folders, out=tmp_path / "a", workers=0)


def test_drafts_of_the_dead_are_removed_and_of_the_living_kept(tmp_path: Path) -> None:
    import os

    ended = subprocess.Popen(["true"])
    ended.wait()
    for process in (ended.pid, os.getpid()):
        (tmp_path / f"{process}.part").write_text("half")
    CellFiles(tmp_path).open()
    assert [file.stem for file in tmp_path.iterdir()] == [str(os.getpid())]


def test_an_audit_of_an_older_version_is_read(folders: tuple[Path, Path], tmp_path: Path) -> None:
    result = audit(*folders, out=tmp_path / "a")
    values = json.loads(result.to_json())
    del values["alarms"]
    (tmp_path / "old.json").write_text(json.dumps(values))
    assert read_audit(tmp_path / "old.json").alarms == ()


@pytest.mark.slow
def test_a_killed_audit_ends_with_the_same_scores(folders: tuple[Path, Path], tmp_path: Path) -> None:
    report = audit_resume.measure(
        *folders, tmp_path / "work", kills=3, learn=4, attacks=("linkage", "own_original", "recovery"), seed=1
    )
    assert report.scores > 50
    assert report.differing == ()
    assert any(cells for _, cells in report.kills)
