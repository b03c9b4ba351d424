"""`veilkit experts` from end to end."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from typer.testing import CliRunner

from veilkit.cli.experts import app
from veilkit.errors import CheckpointError, ConfigError, UnknownNameError
from veilkit.experts import load_expert
from veilkit.networks.reid import ReidNetwork, ReidNetworkConfig, save_reid


def run(*words: str | Path) -> str:
    """What the command prints; its errors are raised, as the command line's main tells them."""
    result = CliRunner().invoke(app, [str(word) for word in words], catch_exceptions=False)
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
    names = [line.split()[0] for line in run("list").splitlines()]
    assert names == ["people", "histogram", "dlib"]
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
