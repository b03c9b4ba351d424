"""FRO on faces in the smallest, on random pictures of nobody in LFW's layout."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

from studies.shared.face_data import middle, read_middles, same_class_pairs, split_people, verify, write_middles
from tests.conftest import random_picture
from tests.studies.harness import Done, random_faces
from veilkit.datasets.lfw import Lfw, load_lfw
from veilkit.errors import DataError
from veilkit.networks.reid import ReidNetwork, ReidNetworkConfig

FOLDS = {1: "ab", 2: "cd", 3: "ef"}


@pytest.fixture
def lfw(tmp_path: Path) -> Lfw:
    """Nine people; each of three folds has one pair of one person and one of two."""
    random_faces(tmp_path / "faces")
    return load_lfw(tmp_path / "faces")


@pytest.mark.slow
def test_accuracies_have_intervals_and_models_are_found_again(done: Callable[[str], Done], tmp_path: Path) -> None:
    made = done("fro-faces")
    assert made.cells() == {"faces/originals", "faces/pool", "faces/ssim", "faces/student"}
    assert made.cell("faces/pool")["pictures"] == made.cell("faces/student")["pictures"] == 14
    for model in ("pool", "originals", "student"):
        value, low, high = made.cell(f"faces/{model}")["accuracy"]
        assert 0 <= low <= value <= high <= 1
    with made.open(tmp_path) as some:
        assert some.cell("faces/student") == made.cell("faces/student")
    times = {file: file.stat().st_mtime_ns for file in tmp_path.rglob("*.safetensors")}
    (tmp_path / "cells" / "faces.student.json").unlink()
    with made.open(tmp_path) as again:
        assert again.cell("faces/student") == made.cell("faces/student")
    assert {file: file.stat().st_mtime_ns for file in times} == times


def test_training_and_test_people_are_apart_and_nobody_has_more_than_so_many_pictures(lfw: Lfw) -> None:
    train, test = split_people(lfw, (2, 3), people=4, fewest=3, shots=4)
    assert train.identities == ("a", "b", "g", "h")
    assert test.identities == ("c", "d", "e", "f")
    assert [record.path for record in train.records if record.identity == "a"] == [f"a/a_000{n}.jpg" for n in "1234"]
    assert sum(record.identity == "c" for record in test.records) == 4


def test_too_few_people_are_told(lfw: Lfw) -> None:
    with pytest.raises(DataError, match="5 people outside the test folds"):
        split_people(lfw, (2, 3), people=5, fewest=3, shots=4)


def test_the_middle_is_cut_out_and_names_become_numbers(lfw: Lfw, tmp_path: Path) -> None:
    train, _ = split_people(lfw, (2, 3), people=4, fewest=3, shots=4)
    written = write_middles(train, tmp_path / "cut", 24)
    assert written.identities == ("0000", "0001", "0002", "0003")
    for index, record in enumerate(train.records):
        with Image.open(train.file(index)) as whole, Image.open(written.file(index)) as cut:
            expected = np.asarray(whole.convert("RGB"))[4:28, 4:28]
            assert np.array_equal(np.asarray(cut), expected), record.path
    paths = [record.path for record in train.records]
    pixels = read_middles(train.root, paths, 24, (24, 24))
    with Image.open(written.file(3)) as cut:
        assert np.array_equal(pixels[3].permute(1, 2, 0).numpy(), np.asarray(cut))
    with pytest.raises(DataError, match="another study"):
        write_middles(split_people(lfw, (2, 3), people=2, fewest=3, shots=4)[0], tmp_path / "cut", 24)


def test_a_picture_smaller_than_its_middle_is_refused() -> None:
    with pytest.raises(DataError, match="at least 24x24"):
        middle(Image.new("RGB", (20, 32)), 24)


def test_pairs_of_one_class_are_of_one_class(lfw: Lfw) -> None:
    split = split_people(lfw, (2, 3), people=4, fewest=3, shots=4)[0]
    draws = [0.0, 0.3, 0.6, 0.999]
    ours, theirs = same_class_pairs(split, split, [0, 5, 9, 2], draws)
    assert [record.identity for record in ours.records] == [record.identity for record in theirs.records]
    assert theirs.records[3].path == "a/a_0004.jpg"


class Mean(ReidNetwork):
    """Features are the colours of the middle themselves, so that a picture is nearest to its like."""

    def embed(self, images: torch.Tensor) -> torch.Tensor:
        return (images - 0.5).flatten(1)


def test_verification_finds_people_who_look_the_same_in_every_picture(tmp_path: Path) -> None:
    root = tmp_path / "faces"
    for number, person in enumerate("abcdef"):
        (root / person).mkdir(parents=True)
        picture = random_picture(number, 32, 32)
        for shot in (1, 2, 3):
            mirrored = Image.fromarray(np.maximum(picture, picture[:, ::-1]))  # features are a mean with the mirror's
            mirrored.save(root / person / f"{person}_{shot:04d}.jpg")
    pairs = "".join(f"{one} 1 2\n{one} 1 {other} 2\n" for one, other in FOLDS.values())
    (root / "pairs.txt").write_text(f"3 1\n{pairs}")
    lfw = load_lfw(root)
    network = Mean(ReidNetworkConfig(backbone="osnet-x0.25", size=(16, 16)))
    found = verify(network, lfw, lfw.images, folds=(1, 2, 3), middle=24, size=(16, 16), seed=0)
    assert found["accuracy"] == [1.0, 1.0, 1.0]
    assert (found["eer"], found["tpr@0.01"], found["tpr@0.001"]) == (0.0, 1.0, 1.0)
    assert (found["pairs"], found["genuine"], found["impostor"]) == (6, 6 * 3, 15 * 9)
