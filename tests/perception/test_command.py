"""The commands as a user gives them."""

from __future__ import annotations

import json
from pathlib import Path

from typer.testing import CliRunner

from tests.perception.studies import folders, sheet, truth
from veilkit.cli import app
from veilkit.perception import make
from veilkit.perception.key import read_study_key


def run(*words: object):
    return CliRunner().invoke(app, [str(word) for word in words])


def test_a_study_is_made_and_scored(tmp_path: Path) -> None:
    originals, blurred, noisy = folders(tmp_path)
    made = run("study", "make", originals, blurred, noisy, tmp_path / "s", "--questions", 4, "--participants", 2)
    assert made.exit_code == 0, made.output
    assert "12 questions, 6 attention checks" in made.stdout
    assert "as private as they are" in made.stdout
    assert f"Keep {tmp_path / 's.private' / 'key.json'}" in made.stdout
    key = read_study_key(tmp_path / "s.private" / "key.json")
    files = []
    for number, code in enumerate(key.participants or ()):
        files.append(tmp_path / f"{code}.json")
        files[-1].write_text(json.dumps(sheet(key, code, truth, 100 * number)))
    scored = run("study", "score", *files, "--key", tmp_path / "s.private" / "key.json")
    assert scored.exit_code == 0, scored.output
    assert "| blurred " in scored.stdout
    assert "2 participants count, 0 do not" in scored.stdout
    told = run("study", "score", *files, "--key", tmp_path / "s.private" / "key.json", "--json")
    assert len(json.loads(told.stdout)["rows"]) == 6
    again = run("study", "score", *files, files[0], "--key", tmp_path / "s.private" / "key.json")
    assert again.exit_code == 2
    assert "are both of participant" in again.stderr


def test_kinds_and_a_seed(tmp_path: Path) -> None:
    originals, blurred, _ = folders(tmp_path)
    words = ("--kind", "choice", "--choices", 3, "--questions", 3, "--checks", 0, "--no-control", "--seed", 4)
    made = run("study", "make", originals, blurred, tmp_path / "s", *words)
    assert made.exit_code == 0, made.output
    assert "drawn from a seed" in made.stdout
    key = read_study_key(tmp_path / "s.private" / "key.json")
    assert {(q.kind, len(q.options)) for q in key.questions.values()} == {("choice", 3)}


def test_a_large_page_is_warned_of(tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr(make, "LARGE", 1000)
    originals, blurred, _ = folders(tmp_path)
    made = run("study", "make", originals, blurred, tmp_path / "s", "--questions", 4)
    assert made.exit_code == 0
    assert "ask fewer --questions" in made.stderr


def test_a_file_in_place_of_the_folder_is_told_and_no_key_is_left(tmp_path: Path) -> None:
    originals, blurred, noisy = folders(tmp_path)
    (tmp_path / "s").write_text("kept")
    made = run("study", "make", originals, blurred, noisy, tmp_path / "s", "--questions", 4)
    assert made.exit_code == 2
    assert "which is a file" in made.stderr
    assert (tmp_path / "s").read_text() == "kept"
    assert not (tmp_path / "s.private").exists()
