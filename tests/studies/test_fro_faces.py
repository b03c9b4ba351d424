"""FRO on faces in the smallest, on random pictures of nobody in LFW's layout."""

from __future__ import annotations

from dataclasses import asdict, replace
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

from studies.fro_faces.cells import FaceStudyConfig, faces_table, run_faces
from studies.shared.cells import CellStore
from studies.shared.face_data import middle, read_middles, same_class_pairs, split_people, write_middles
from studies.shared.face_verification import verify
from tests.conftest import random_picture
from veilkit.datasets.lfw import Lfw, load_lfw
from veilkit.errors import ConfigError, DataError
from veilkit.networks.reid import ReidNetwork, ReidNetworkConfig
from veilkit.progress import Progress

TINY = FaceStudyConfig(
    people=4, fewest=3, shots=4, folds=(2, 3), middle=24, backbone="osnet-x0.25", size=(16, 16), epochs=1, batch=2,
    preset="paper", steps=2, pairs=6,
)  # fmt: skip
FOLDS = {1: "ab", 2: "cd", 3: "ef"}
SHOTS = {"a": 6, "b": 3, "c": 9, "d": 2, "e": 3, "f": 2, "g": 4, "h": 3, "i": 2}  # g, h and i are in no pair


@pytest.fixture
def lfw(tmp_path: Path) -> Lfw:
    """Nine people; each of three folds has one pair of one person and one of two."""
    root = tmp_path / "faces"
    for number, (person, shots) in enumerate(SHOTS.items()):
        (root / person).mkdir(parents=True)
        for shot in range(1, shots + 1):
            picture = Image.fromarray(random_picture(100 * number + shot, 32, 32))
            picture.save(root / person / f"{person}_{shot:04d}.jpg")
    pairs = "".join(f"{one} 1 2\n{one} 1 {other} 2\n" for one, other in FOLDS.values())
    (root / "pairs.txt").write_text(f"3 1\n{pairs}")
    return load_lfw(root)


def run(lfw: Lfw, folder: Path, config: FaceStudyConfig = TINY) -> dict[str, dict[str, object]]:
    with Progress(config.cells(), "cells") as progress:
        return run_faces(lfw, folder, config, CellStore(folder, asdict(config), progress), init=None, workers=0)


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


@pytest.mark.slow
def test_a_study_fills_its_cells_and_goes_on_where_it_was(lfw: Lfw, tmp_path: Path) -> None:
    folder = tmp_path / "study"
    found = run(lfw, folder)
    assert sorted(file.name for file in (folder / "cells").glob("*.json")) == [
        "faces.originals.json", "faces.pool.json", "faces.ssim.json", "faces.student.json",
    ]  # fmt: skip
    assert found["pool"]["pictures"] == found["student"]["pictures"] == 14
    for model in ("pool", "originals", "student"):
        value, low, high = found[model]["accuracy"]  # type: ignore[misc]
        assert 0 <= low <= value <= high <= 1
    table = faces_table(found)
    assert "| student of FRO | 14 |" in table
    assert "4 official pairs of 4 people" in table
    made = {file: file.stat().st_mtime_ns for file in folder.rglob("*.safetensors")}
    (folder / "cells" / "faces.student.json").unlink()
    assert run(lfw, folder) == found
    assert {file: file.stat().st_mtime_ns for file in made} == made
    with pytest.raises(DataError, match="steps differ"):
        run(lfw, folder, replace(TINY, steps=3))


@pytest.mark.parametrize("wrong", [{"folds": (8,)}, {"people": 1}, {"fewest": 13}, {"pairs": 0}])
def test_settings_that_make_no_sense_are_refused(wrong: dict[str, int]) -> None:
    with pytest.raises(ConfigError):
        FaceStudyConfig(**wrong)
