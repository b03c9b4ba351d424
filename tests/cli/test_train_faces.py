"""`veilkit train faces` and `veilkit train face-attributes` from end to end, in small."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from typer.testing import CliRunner

from veilkit.cli.train import app
from veilkit.errors import ConfigError
from veilkit.experts import load_expert
from veilkit.experts.face_attributes import FaceAttributePredictor
from veilkit.synthetic.faces import Ranges, generate_faces


def run(*words: object) -> str:
    """What the command prints; its errors are raised, as the command line's main tells them."""
    threads = torch.get_num_threads()
    try:
        result = CliRunner().invoke(app, [str(word) for word in words], catch_exceptions=False)
    finally:
        torch.set_num_threads(threads)
    assert result.exit_code == 0, result.output
    return result.output


def test_attributes_are_learned_from_generated_faces(tmp_path: Path) -> None:
    generate_faces(tmp_path / "faces", people=2, images=2, seed=3, size=64)
    out = tmp_path / "attributes.safetensors"
    tiny = ("--set", "stored=64", "--set", "cut=48", "--set", "side=32", "--set", "epochs=1", "--set", "batch=4")
    said = run("face-attributes", tmp_path / "faces", "--out", out, "--work-dir", tmp_path / "work", *tiny)
    assert "gaze: 4 generated faces" in said
    assert FaceAttributePredictor.load(out, "gaze").predict(torch.rand(1, 3, 60, 60)).shape == (1, 2)
    with pytest.raises(ConfigError, match="like 8,9,10"):
        run("face-attributes", tmp_path / "faces", "--out", out, "--folds", "last", "--work-dir", tmp_path / "work")


def test_identity_is_learned_from_aligned_faces(tmp_path: Path) -> None:
    pytest.importorskip("dlib", reason="the extra faces is not installed")
    generate_faces(tmp_path / "faces", people=2, images=2, seed=5, size=128, ranges=Ranges(5, 5, 5, 5, 5))
    out = tmp_path / "identity.safetensors"
    tiny = ("--backbone", "osnet-x0.25", "--set", "size=32,32", "--set", "epochs=1", "--set", "identities=2")
    options = ("--fewest", 2, "--shots", 2, "--work-dir", tmp_path / "work", "--set", "images=2")
    assert "2 people learned" in run("faces", tmp_path / "faces", "--out", out, *options, *tiny)
    assert load_expert(out).embed(torch.rand(3, 3, 40, 40)).shape == (3, 128)
    assert len(list((tmp_path / "work" / "aligned").rglob("*.png"))) >= 3
