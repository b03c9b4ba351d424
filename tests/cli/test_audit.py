from __future__ import annotations

from pathlib import Path

from typer.testing import CliRunner

from tests.audit.folders import changed, plain, same
from tests.methods.experts import tiny_expert_file
from veilkit.audit import read_audit
from veilkit.cli import app
from veilkit.pipeline.protect import protect


def run(*words: object):
    return CliRunner().invoke(app, [str(word) for word in words])


def test_an_audit_tells_its_findings_and_writes_its_files(tmp_path: Path) -> None:
    originals = plain(tmp_path / "o", people=5)
    release = changed(originals, tmp_path / "p", same)
    done = run("audit", originals, release, "--expert", "histogram", "--judge", "histogram", "--out", tmp_path / "a")
    assert done.exit_code == 0
    assert "finds the right person" in done.stdout
    assert "Blind guessing finds" in done.stdout
    assert "Not measured: attackers who learn from the protection" in done.stdout
    assert str(tmp_path / "a" / "report.html") in done.stdout
    assert read_audit(tmp_path / "a" / "audit.json").pictures == 15


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
