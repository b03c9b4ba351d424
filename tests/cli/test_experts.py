"""`veilkit experts` from end to end, and experts of faces that `veilkit train` makes, in small."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
import typer
from typer.testing import CliRunner

from veilkit.cli.experts import app as experts
from veilkit.cli.train import app as train
from veilkit.errors import CheckpointError, ConfigError, UnknownNameError
from veilkit.experts import load_expert
from veilkit.experts.face_attributes import FaceAttributePredictor
from veilkit.networks.reid import ReidNetwork, ReidNetworkConfig, save_reid
from veilkit.synthetic.faces import Ranges, generate_faces


def run(*words: object, app: typer.Typer = experts) -> str:
    """What the command prints; its errors are raised, as the command line's main tells them."""
    threads = torch.get_num_threads()
    try:
        result = CliRunner().invoke(app, [str(word) for word in words], catch_exceptions=False)
    finally:
        torch.set_num_threads(threads)
    assert result.exit_code == 0, result.output
    return result.output


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("VEILKIT_HOME", str(tmp_path / "home"))
    return tmp_path / "home"


@pytest.fixture
def model(tmp_path: Path) -> Path:
    torch.manual_seed(0)
    network = ReidNetwork(ReidNetworkConfig("osnet-x0.25", (64, 32), reduced=24))
    with torch.no_grad():
        network.train().embed(torch.rand(4, 3, 2, 2))
    path = tmp_path / "model.safetensors"
    save_reid(path, network)
    return path


def test_add_list_show_remove(model: Path, tmp_path: Path) -> None:
    card = tmp_path / "card.md"
    card.write_text("# Walkers\nTrained on nobody.\n")
    added = run("add", model, "--name", "walkers", "--licence", "MIT", "--source", "a friend", "--card", card)
    assert "walkers added: 24 features from images of 64x32" in added

    (line,) = [line for line in run("list").splitlines() if line.startswith("walkers")]
    assert line.split() == ["walkers", "embedder", "24", "64x32", "user", "MIT"]

    shown = run("show", "walkers")
    for part in ("a friend", "imagenet", "rgb", "gradients reach the images", "# Walkers\nTrained on nobody."):
        assert part in shown

    assert run("remove", "walkers") == "walkers removed\n"
    assert "walkers" not in run("list")


def test_mirror_images_are_asked_for_and_shown(model: Path) -> None:
    run("add", model, "--name", "both", "--licence", "MIT", "--flip")
    run("add", model, "--name", "one", "--licence", "MIT")
    assert "mirror image   averaged with the picture's own features" in run("show", "both")
    assert "mirror image   not looked at" in run("show", "one")
    assert (load_expert("both").info.flip, load_expert("one").info.flip) == (True, False)


def test_built_in_experts_are_listed_and_shown() -> None:
    kinds = [line.split()[:2] for line in run("list").splitlines()]
    names = [name for name, kind in kinds if kind == "embedder"]
    assert ["yunet", "detector"] in kinds
    assert ["gaze", "predictor"] in kinds
    assert ["mobilefacenet", "identity"] in kinds
    assert names == ["people", "outfits", "histogram", "stripes", "dlib", "retail-0277", "osnet-0.25"]
    shown = run("show", "histogram")
    assert "any size" in shown
    assert "it only judges" in shown


def test_an_expert_whose_extra_is_missing_does_not_hide_the_others(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("veilkit.experts.dlib_files._PACKAGE", "no_such_models")
    listed = run("list")
    assert "pip install 'veilkit[faces]'" in listed
    assert "histogram" in listed


def test_a_damaged_expert_does_not_hide_the_others(model: Path, home: Path) -> None:
    run("add", model, "--name", "walkers", "--licence", "MIT")
    (home / "experts" / "walkers" / "expert.json").write_text("{")
    listed = run("list")
    assert "not usable: the expert 'walkers' is damaged" in listed
    assert "histogram" in listed
    run("remove", "walkers")


def test_errors_name_what_to_do(model: Path, home: Path) -> None:
    with pytest.raises(CheckpointError, match="not the file that was meant"):
        run("add", model, "--name", "walkers", "--licence", "MIT", "--sha256", "ab" * 32)
    with pytest.raises(ConfigError, match="leave them out"):
        run("add", model, "--name", "walkers", "--licence", "MIT", "--size", "64x32")
    with pytest.raises(UnknownNameError, match="did you mean 'histogram'"):
        run("show", "histgram")
    assert not home.exists()


def test_attributes_are_learned_from_generated_faces(tmp_path: Path) -> None:
    generate_faces(tmp_path / "faces", people=2, images=2, seed=3, size=64)
    out = tmp_path / "attributes.safetensors"
    tiny = ("--set", "stored=64", "--set", "cut=48", "--set", "side=32", "--set", "epochs=1", "--set", "batch=4")
    said = run("face-attributes", tmp_path / "faces", "--out", out, "--work-dir", tmp_path / "work", *tiny, app=train)
    assert "gaze: 4 generated faces" in said
    assert FaceAttributePredictor.load(out, "gaze").predict(torch.rand(1, 3, 60, 60)).shape == (1, 2)
    with pytest.raises(ConfigError, match="like 8,9,10"):
        run(
            "face-attributes",
            tmp_path / "faces",
            "--out",
            out,
            "--folds",
            "last",
            "--work-dir",
            tmp_path / "work",
            app=train,
        )


def test_identity_is_learned_from_aligned_faces(tmp_path: Path) -> None:
    pytest.importorskip("dlib", reason="the extra faces is not installed")
    generate_faces(tmp_path / "faces", people=2, images=2, seed=5, size=128, ranges=Ranges(5, 5, 5, 5, 5))
    out = tmp_path / "identity.safetensors"
    tiny = ("--backbone", "osnet-x0.25", "--set", "size=32,32", "--set", "epochs=1", "--set", "identities=2")
    options = ("--fewest", 2, "--shots", 2, "--work-dir", tmp_path / "work", "--set", "images=2")
    assert "2 people learned" in run("faces", tmp_path / "faces", "--out", out, *options, *tiny, app=train)
    assert load_expert(out).embed(torch.rand(3, 3, 40, 40)).shape == (3, 128)
    assert len(list((tmp_path / "work" / "aligned").rglob("*.png"))) >= 3
