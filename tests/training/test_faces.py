"""Faces for an identity embedder: who may be learned from, and how they are put upright."""

from __future__ import annotations

import io
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

from tests.experts.faces_of_nobody import drawn, landmarks
from veilkit.datasets.folder import load_folder
from veilkit.datasets.labelled import load_training_part
from veilkit.datasets.lfw import parse_folds
from veilkit.errors import ConfigError, DataError
from veilkit.experts.alignment import ARCFACE
from veilkit.training.faces import align_labelled, label_faces, load_training_faces


def people(root: Path, counts: dict[str, int]) -> Path:
    for name, count in counts.items():
        (root / name).mkdir(parents=True)
        for shot in range(1, count + 1):
            Image.new("RGB", (20, 20)).save(root / name / f"{name}_{shot:04d}.jpg")
    return root


def portraits(root: Path) -> Path:
    for number, image in enumerate(drawn()[0]):
        (root / f"person{number}").mkdir(parents=True)
        pixels = image.mul(255).round().byte().permute(1, 2, 0).numpy()
        Image.fromarray(pixels).save(root / f"person{number}" / "shot.png")
    return root


def test_people_of_the_test_folds_are_left_out(tmp_path: Path) -> None:
    root = people(tmp_path, {"Ann": 3, "Bea": 2, "Cat": 4, "Dot": 1, "Eve": 2})
    (root / "pairs.txt").write_text("2 1\nAnn 1 2\nAnn 3 Bea 1\nEve 1 2\nEve 1 Dot 1\n")
    assert load_training_faces(root, (2,), fewest=1, shots=None).identities == ("Ann", "Bea", "Cat")
    split = load_training_faces(root, (1,), fewest=2, shots=3)
    assert [record.path for record in split.records if record.identity == "Cat"] == [
        f"Cat/Cat_000{shot}.jpg" for shot in (1, 2, 3)
    ]
    assert split.identities == ("Cat", "Eve")
    assert load_training_part(root, folds=(2,)).identities == ("Ann", "Bea", "Cat")
    assert load_training_part(root, "folder", folds=(2,)).identities == ("Ann", "Bea", "Cat", "Dot", "Eve")
    (root / "pairs.txt").unlink()
    assert load_training_faces(root, (1,), fewest=3, shots=2).identities == ("Ann", "Cat")
    assert len(load_training_part(root, folds=(2,)).identities) == 5


def test_folds_that_are_no_numbers_are_refused() -> None:
    with pytest.raises(ConfigError, match="like 8,9,10, but got '8-10'"):
        parse_folds("8-10")


def test_faces_are_upright_numbered_and_written_once(tmp_path: Path) -> None:
    split = load_folder(portraits(tmp_path / "in"), "folder")
    images, truths = drawn()
    shares = landmarks(truths) / 192
    shares[2] = torch.nan
    made = align_labelled(split, shares, tmp_path / "out", 112, stream=io.StringIO())
    assert [record.path for record in made.records] == ["00000/000000.png", "00001/000001.png"]
    found = np.asarray(Image.open(tmp_path / "out" / "00001" / "000001.png"))
    wanted = ARCFACE.align(images[1:2], landmarks(truths)[1:2])[0].mul(255).round().byte().permute(1, 2, 0).numpy()
    assert np.array_equal(found, wanted)
    before = (tmp_path / "out" / "00001" / "000001.png").stat().st_mtime_ns
    align_labelled(split, shares, tmp_path / "out", 112, stream=io.StringIO())
    assert (tmp_path / "out" / "00001" / "000001.png").stat().st_mtime_ns == before
    shares[1] = torch.nan
    with pytest.raises(DataError, match="another run"):
        align_labelled(split, shares, tmp_path / "out", 112, stream=io.StringIO())
    with pytest.raises(DataError, match="finds none"):
        align_labelled(split, torch.full((3, 68, 2), torch.nan), tmp_path / "none", 112)


def test_labels_are_dlibs_and_kept(tmp_path: Path) -> None:
    pytest.importorskip("dlib", reason="the extra faces is not installed")
    split = load_folder(portraits(tmp_path / "in"), "folder")
    found = label_faces(split, tmp_path / "work", stream=io.StringIO())
    truth = landmarks(drawn()[1]) / 192
    between = (truth[:, 36] - truth[:, 45]).norm(dim=-1)
    assert ((found - truth).norm(dim=-1).mean(1) / between).max() < 0.12
    said = io.StringIO()
    assert torch.equal(label_faces(split, tmp_path / "work", stream=said), found)
    assert said.getvalue() == ""
