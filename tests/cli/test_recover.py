"""keygen, protect --seal-to and recover as a user gives them."""

from __future__ import annotations

import json
import stat
from pathlib import Path

from tests.cli.test_commands import veilkit
from tests.conftest import tree
from veilkit.pipeline.identities import write_identity
from veilkit.pipeline.protect import protect
from veilkit.pipeline.recovering import recover


def test_from_a_key_to_originals_and_back(folder: Path, tmp_path: Path) -> None:
    archive, second = tmp_path / "archive.txt", tmp_path / "second.txt"
    made = veilkit("keygen", archive)
    assert made.returncode == 0, made.stderr
    assert made.stdout.startswith("age1")
    assert stat.S_IMODE(archive.stat().st_mode) == 0o600
    (tmp_path / "board.txt").write_text(f"# who may open\n{made.stdout}")
    words = ("--method", "blur", "--workers", 1, "--seal-to", write_identity(second), "--seal-to", "board.txt")
    done = veilkit("protect", folder, "out", *words, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert f"sealed in {tmp_path / 'out.sealed'}; any one of 2 keys can open them" in done.stdout
    assert json.loads((tmp_path / "out" / "manifest.json").read_text())["sealed_recipients"] == 2
    back = veilkit("recover", "out", "back", "--identity", archive, cwd=tmp_path)
    assert back.returncode == 0, back.stderr
    assert "12 originals restored" in back.stdout
    assert len((tmp_path / "back.access.jsonl").read_text().splitlines()) == 12
    recover(tmp_path / "out", tmp_path / "again", identity=second)
    assert tree(tmp_path / "back") == tree(tmp_path / "again") == tree(folder)


def test_mistakes_end_in_2_and_write_nothing(folder: Path, tmp_path: Path) -> None:
    protect(folder, tmp_path / "out", "blur", seal_to=[write_identity(tmp_path / "archive.txt")])
    again = veilkit("keygen", tmp_path / "archive.txt")
    assert again.returncode == 2
    assert "never overwritten" in again.stderr
    write_identity(tmp_path / "stranger.txt")
    back = veilkit("recover", tmp_path / "out", tmp_path / "back", "--identity", tmp_path / "stranger.txt")
    assert back.returncode == 2
    assert "nothing was restored, as 12 of 12" in back.stderr
    assert "Traceback" not in back.stderr
    assert not (tmp_path / "back").exists()
