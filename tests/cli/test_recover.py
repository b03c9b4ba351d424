"""keygen, protect --seal-to and recover as a user gives them."""

from __future__ import annotations

import json
import stat
from pathlib import Path

from tests.cli.test_commands import veilkit
from tests.conftest import tree
from veilkit.pipeline.protect import protect
from veilkit.pipeline.recovery import recover
from veilkit.pipeline.sealing.age import write_identity
from veilkit.synthetic.people import generate_people


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


def test_a_learned_decoder_from_fit_to_recovery(tmp_path: Path) -> None:
    generate_people(tmp_path / "people", identities=12, images=8, cameras=2, seed=0, height=64, workers=1)
    settings = {
        "reid.backbone": "osnet-x0.25", "reid.size": "32,16", "reid.epochs": 1, "reid.identities": 4,
        "reid.images": 2, "reid.warmup": 0, "generator.width": 4, "generator.depth": 3, "discriminator.width": 4,
        "discriminator.layers": 1, "baseline_epochs": 1,
    }  # fmt: skip
    small = [word for name, value in settings.items() for word in ("--set", f"{name}={value}")]
    fitted = veilkit("fit", "privacyreid", "people", "--out", "model.safetensors", *small, cwd=tmp_path)
    assert fitted.returncode == 0, fitted.stderr
    assert "model.decoder.safetensors undoes the protection: keep it apart" in fitted.stdout
    assert (tmp_path / "runs" / "model" / "decisions.svg").is_file()
    words = ("--method", "privacyreid", "--model", "model.safetensors", "--names", "keep", "--workers", 0)
    done = veilkit("protect", "people/query", "out", *words, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    back = veilkit("recover", "out", "back", "--model", "model.decoder.safetensors", cwd=tmp_path)
    assert back.returncode == 0, back.stderr
    assert "not the originals byte for byte" in back.stdout
    names = {name for name in tree(tmp_path / "out") if name.endswith(".png")}
    assert set(tree(tmp_path / "back")) == names
    assert len((tmp_path / "back.access.jsonl").read_text().splitlines()) == len(names) > 0
    wrong = veilkit("recover", "out", "again", "--model", "model.safetensors", cwd=tmp_path)
    assert wrong.returncode == 2
    assert "expected a model of kind 'decoder'" in wrong.stderr
    assert "Traceback" not in wrong.stderr
