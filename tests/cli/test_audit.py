from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from typer.testing import CliRunner

from tests.audit.folders import changed, plain, same
from tests.audit.results import result_of
from tests.methods.experts import tiny_expert_file
from veilkit.audit import read_audit
from veilkit.audit.options import AuditOptions
from veilkit.audit.report.terminal import fails, short
from veilkit.audit.result import Alarm
from veilkit.audit.verdicts.verdict import Grade, LevelVerdict
from veilkit.cli import app
from veilkit.errors import DataError
from veilkit.pipeline.protect import protect
from veilkit.types import Level


def run(*words: object):
    return CliRunner().invoke(app, [str(word) for word in words])


HISTOGRAM = ("--expert", "histogram", "--judge", "histogram")


def audited(tmp_path: Path, *words: object, how: Callable[..., object] = same):
    originals = tmp_path / "o" if (tmp_path / "o").exists() else plain(tmp_path / "o", people=5)
    release = tmp_path / "p" if (tmp_path / "p").exists() else changed(originals, tmp_path / "p", how)
    return run("audit", originals, release, *HISTOGRAM, "--budget", "none", "--out", tmp_path / "a", *words)


def test_an_audit_tells_its_findings_and_writes_its_files(tmp_path: Path) -> None:
    done = audited(tmp_path, "--verbose")
    assert done.exit_code == 0
    assert "finds the right person" in done.stdout
    assert "Blind guessing finds" in done.stdout
    assert "Not measured: attackers who learn from the protection" in done.stdout
    assert str(tmp_path / "a" / "report.html") in done.stdout
    assert read_audit(tmp_path / "a" / "audit.json").pictures == 15


def test_the_table_has_a_line_for_each_level_and_at_most_12_in_all(tmp_path: Path) -> None:
    done = audited(tmp_path)
    lines = done.stdout.splitlines()
    assert done.exit_code == 0
    assert len(lines) <= 12
    assert max(map(len, lines[:-1])) <= 160
    assert lines[0].startswith("ALARM (unchanged)")
    levels = [line.split()[0] for line in lines if line[:2] in ("L0", "L1", "L2", "L3")]
    assert sorted(levels) == ["L0", "L1", "L2", "L3"]
    assert next(line for line in lines if line.startswith("L0")).split()[1] == "BROKEN"
    assert any(line.startswith("Kept: the expert histogram finds 100 % of the people") for line in lines)
    assert lines[-1].startswith(f"Report: {tmp_path / 'a' / 'report.html'}")


def test_json_is_all_that_is_printed_and_quiet_tells_alarms_only(tmp_path: Path) -> None:
    done = audited(tmp_path, "--json", "--fail-on", "broken")
    values = json.loads(done.stdout)
    assert done.exit_code == values["exit code"] == 4
    assert values["levels"][0]["level"] == "L0"
    assert values["levels"][0]["grade"] == "broken"
    assert 0.4 < values["levels"][0]["low"] <= values["levels"][0]["value"] == 1.0
    assert [each["name"] for each in values["alarms"]] == ["unchanged"]
    quiet = audited(tmp_path, "--quiet").stdout.splitlines()
    assert [line[:17] for line in quiet] == ["ALARM (unchanged)"]
    both = audited(tmp_path, "--quiet", "--json")
    assert both.exit_code == 2
    assert "exclude each other" in both.stderr


def test_a_leak_fails_by_its_grade_and_so_does_no_verdict() -> None:
    slight = (LevelVerdict(Level.L0, Grade.SLIGHT, ""), LevelVerdict(Level.L1, Grade.NO_VERDICT, ""))
    result = result_of(verdicts=slight)
    assert [fails(result, word) for word in ("slight", "serious", "broken")] == [True, False, False]
    assert fails(replace(result, alarms=(Alarm("metadata", "in 3 files"),)), "broken")
    assert fails(replace(result, verdicts=slight[1:]), "broken")
    assert not fails(replace(result, verdicts=(replace(slight[0], grade=Grade.NOTHING_FOUND),)), "slight")


def test_without_any_verdict_the_table_says_why(tmp_path: Path) -> None:
    empty = LevelVerdict(Level.L1, Grade.NO_VERDICT, "No verdict at L1: recovery (its loss still fell).")
    last = list(short(result_of(verdicts=(empty,))))[-2]
    assert last == "L1     no verdict  recovery (its loss still fell)."


def test_a_first_audit_has_three_minutes_unless_something_else_is_asked_for(monkeypatch, tmp_path: Path) -> None:
    asked = []

    def stopped(options: AuditOptions) -> None:
        asked.append(options.check().budget)
        raise DataError("enough")

    monkeypatch.setattr("veilkit.audit.run.make_audit", stopped)
    originals = plain(tmp_path / "o", people=2)
    release = changed(originals, tmp_path / "p", same)
    for words in ((), ("--budget", "none"), ("--learn", "5"), ("--attack", "linkage"), ("--budget", "1h")):
        run("audit", originals, release, *words)
    assert asked == ["3m", "none", None, None, "1h"]


def test_the_wrong_key_is_told_with_exit_code_2(tmp_path: Path) -> None:
    originals = plain(tmp_path / "o", people=3)
    protect(originals, tmp_path / "p", "pixelate", key=tmp_path / "k1" / "key")
    protect(originals, tmp_path / "q", "pixelate", key=tmp_path / "k2" / "key")
    done = run("audit", originals, tmp_path / "p", "--key", tmp_path / "k2" / "key")
    assert done.exit_code == 2
    assert "not the one that this release was made with" in done.stderr


def test_weights_to_start_from_are_passed_on_and_wrong_ones_told(tmp_path: Path) -> None:
    originals = plain(tmp_path / "o", people=3)
    release = changed(originals, tmp_path / "p", same)
    words = ("audit", originals, release, "--judge", "histogram", "--attack", "linkage", "--out", tmp_path / "a")
    done = run(*words, "--start", tmp_path / "missing.safetensors")
    assert done.exit_code == 2
    assert "no such model file" in done.stderr
    assert not (tmp_path / "a").exists()
    assert run(*words, "--start", tiny_expert_file("mobilenetv2")).exit_code == 0
    assert len(read_audit(tmp_path / "a" / "audit.json").config["start_sha256"]) == 64


def test_nothing_to_measure_is_exit_code_2(tmp_path: Path) -> None:
    originals = plain(tmp_path / "o", people=3)
    (tmp_path / "p").mkdir()
    done = run("audit", originals, tmp_path / "p")
    assert done.exit_code == 2
    assert "no pictures" in done.stderr


def test_attacks_are_listed_and_shown() -> None:
    listed = run("attacks", "list")
    assert listed.exit_code == 0
    assert "stock_recogniser" in listed.stdout
    assert "class_linkage" in listed.stdout
    assert "level: L0" in run("attacks", "show", "class_linkage").stdout
    shown = run("attacks", "show", "linkage")
    assert "level: L0" in shown.stdout
    assert "pairs" in shown.stdout
    assert "gates: identity transform" in shown.stdout
    assert run("attacks", "show", "nothing").exit_code == 2
