"""The study of PEPR-Net in the smallest: trainings, features, noise and attacks, each cell computed once."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

from studies.peprnet.data import TestPart
from studies.peprnet.measures import averaging, curve, noised
from studies.peprnet.plan import BASELINE, MODELS, STAGE1, WIDE, PeprStudyConfig
from studies.peprnet.rivals import heads_blurred
from tests.audit.folders import person
from tests.studies.harness import TINY_STUDIES, Done, people
from veilkit.datasets.market1501 import load_market1501
from veilkit.errors import ConfigError
from veilkit.privacy import PrivUnit

TINY = TINY_STUDIES["pepr"].config
Find = Callable[[str], Done]


@pytest.fixture
def data(tmp_path: Path) -> Path:
    people(tmp_path / "people")
    return tmp_path / "people"


@pytest.mark.slow
def test_pictures_are_drawn_and_everybody_is_identified(done: Find) -> None:
    made = done("pepr")
    with Image.open(made.folder / "sheets" / "reconstructed.png") as sheet:
        assert sheet.size[1] > 3 * 128  # originals, and what was decoded without and with noise
    for name in TINY.models:
        found = made.cell(f"model/{name}")
        assert set(found["utility"]) == {"rank-1", "mAP"}
        assert set(found["identification"]["each"]) == {"softmax", "1-NN", "centroid"}
        assert len(found["identification"]["people"]) == 8


@pytest.mark.slow
def test_a_model_that_is_gone_is_named(done: Find, tmp_path: Path) -> None:
    made = done("pepr")
    (tmp_path / "cells").mkdir()
    name = "training.baseline.json"
    (tmp_path / "cells" / name).write_bytes((made.folder / "cells" / name).read_bytes())
    with made.open(tmp_path) as some, pytest.raises(ConfigError, match="delete that cell"):
        some.features(BASELINE)
    with made.open(epsilons=(16.0,)) as fewer:  # these belong to no other cell
        assert fewer.model(STAGE1) == made.cell(f"model/{STAGE1}")
        assert "part" not in vars(fewer)  # not even the pictures were read


@pytest.mark.slow
def test_differences_are_those_of_the_cells(done: Find) -> None:
    made = done("pepr")
    first, second = (made.cell(f"model/{name}") for name in (STAGE1, BASELINE))
    changed = made.cell(f"change/{STAGE1}")
    for metric in ("rank-1", "mAP"):
        expected = first["utility"][metric][0] - second["utility"][metric][0]
        assert changed[metric][0] == pytest.approx(expected)
    for name in ("softmax", "1-NN", "centroid"):
        one, other = (np.mean(each["identification"]["each"][name]) for each in (first, second))
        value, low, high = changed[name]
        assert value == pytest.approx(one - other, abs=1e-4)
        assert low <= value <= high
        scores = first["identification"]["scores"]
        assert scores[f"accuracy ({name})"][0] == pytest.approx(one, abs=1e-4)


@pytest.mark.slow
def test_noise_is_proved_or_said_not_to_be(done: Find) -> None:
    made = done("pepr")
    assert made.cell(f"stage2/{STAGE1}/privunit/16")["proved"] == 16.0
    assert made.cell(f"stage2/{STAGE1}/gaussian/2")["proved"] == 2.0
    assert made.cell(f"stage2/{STAGE1}/paper/1")["proved"] is None
    assert "no guarantee" in (made.folder / "rank-1-epsilon.svg").read_text()


def test_encoders_differ_in_what_their_names_say() -> None:
    config = PeprStudyConfig()
    for name, settings in MODELS.items():
        trained = config.trained(name)
        back = replace(trained, **{key: getattr(config.method, key) for key in settings})
        assert back == config.method
    assert config.dimensions == {128: STAGE1, 512: WIDE}
    assert (config.trained(BASELINE).deid, config.trained(BASELINE).adversary) == ("none", "none")


def test_the_test_part_has_one_query_and_one_entry_of_each_person(data: Path) -> None:
    part = TestPart(load_market1501(data), 8, (32, 16))
    query, entry = part.first_of_each()
    assert len(query) == 8
    assert (part.people[query] == part.people[entry]).all()
    assert part.search.cameras is not None
    assert (part.search.cameras[query] != part.search.cameras[entry]).all()
    assert len(part.pictures) == len(part.people) == 8 * 5
    expected = torch.from_numpy(person(12, 0)).permute(2, 0, 1).float() / 255
    assert torch.equal(part.pictures.load(0), expected)


def test_rank_1_falls_with_noise_and_rises_with_epsilon(data: Path) -> None:
    part = TestPart(load_market1501(data), 8, (32, 16))
    features = np.random.default_rng(0).normal(size=(9, 64))[part.people].astype(np.float32)
    config = replace(TINY, draws=20)
    found = curve(part, features, "privunit", (0.5, 16.0), config)
    assert found["clean"]["person"] == 1.0
    assert found["people"] == 8
    assert found["16"]["person"] > 0.9
    assert found["0.5"]["record"] < 0.5
    twice = (
        noised(features, PrivUnit(dimension=64, epsilon=4.0), 3),
        noised(features, PrivUnit(dimension=64, epsilon=4.0), 3),
    )
    assert (twice[0] == twice[1]).all()


def test_repeated_releases_find_more_and_cost_more(data: Path) -> None:
    part = TestPart(load_market1501(data), 8, (32, 16))
    features = np.random.default_rng(0).normal(size=(9, 64))[part.people].astype(np.float32)
    found = averaging(part, features, "privunit", TINY)
    assert found["64"]["rank-1"] > found["1"]["rank-1"]
    assert found["1"]["epsilon"] == pytest.approx(TINY.averaging_epsilon)
    assert found["64"]["epsilon"] > 10 * found["1"]["epsilon"]


def test_blurred_heads_leave_the_rest_alone() -> None:
    pixels = torch.randint(0, 256, (2, 3, 50, 20), dtype=torch.uint8, generator=torch.Generator().manual_seed(0))
    blurred = heads_blurred(pixels)
    assert torch.equal(blurred[:, :, 11:], pixels[:, :, 11:])
    assert blurred[:, :, :11].float().std() < 0.5 * pixels[:, :, :11].float().std()
