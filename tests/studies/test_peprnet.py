"""The study of PEPR-Net in the smallest: trainings, features, noise and attacks, each cell computed once."""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image

from benchmarks import claims
from studies.peprnet.claims import FORMS
from studies.peprnet.data import TestPart
from studies.peprnet.feature_attacks import averaged_releases, feature_membership, togetherness
from studies.peprnet.measures import averaging, curve, noised
from studies.peprnet.plan import BASELINE, MODELS, STAGE1, WIDE, PeprStudyConfig
from studies.peprnet.rivals import heads_blurred
from tests.audit.folders import person
from tests.studies.conftest import Published, around
from tests.studies.harness import TINY_STUDIES, Done, people
from veilkit.datasets.market1501 import load_market1501
from veilkit.errors import ConfigError, DataError
from veilkit.privacy import PrivUnit
from veilkit.rng import Randomness

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


PUBLISHED = Published("pepr", place="peprnet", prefix="pepr-")
STUDY, CONFIG = PUBLISHED.study, PUBLISHED.config
rows, by_id, withheld, tables = PUBLISHED.rows, PUBLISHED.by_id, PUBLISHED.withheld, PUBLISHED.tables


BY = ("softmax", "1-NN", "centroid")


def named(*values: float) -> dict[str, Any]:
    scores = {f"accuracy ({by})": around(value) for by, value in zip(BY, values, strict=True)}
    return {"level": "L2", "applicable": True, "reason": "", "invalid": [], "scores": scores, "chance": {},
            "people": [1, 2]}  # fmt: skip


def judged(mean_ap: float, *values: float) -> dict[str, Any]:
    return {"utility": {"mAP": around(mean_ap), "rank-1": around(mean_ap + 0.1)}, "identification": named(*values)}


def changed(mean_ap: float, *values: float) -> dict[str, Any]:
    pairs = zip(("mAP", "rank-1", *BY), (mean_ap, mean_ap, *values), strict=True)
    return {name: around(value) for name, value in pairs}


def points(person: float, record: float) -> dict[str, Any]:
    return {"clean": {"person": 0.4, "record": 1.0}, "people": 700, "16": {"person": person, "record": record}}


HISTORY = [{"epoch": 1, "reid": 0.5, "deid": 0.1, "adversary": 3.5, "head": 0.0, "head weight": 0.05}]
CELLS: dict[str, Any] = {
    "training/stage1": {"history": HISTORY},
    "model/baseline": judged(0.30, 0.80, 0.70, 0.75),
    "model/stage1": judged(0.28, 0.60, 0.60, 0.70),
    "change/stage1": changed(-0.02, -0.20, -0.10, -0.05),
    "model/alternating": judged(0.20, 0.5, 0.5, 0.5),
    "change/alternating": changed(-0.10, -0.30, -0.20, -0.25),
    "stage2/stage1/paper/0.5": {**judged(0.1, 0.1, 0.1, 0.1), "claimed": 0.5, "proved": None, "sigma": 5.0},
    "stage2/stage1/privunit/16": {**judged(0.2, 0.2, 0.2, 0.2), "claimed": 16.0, "proved": 16.0, "sigma": None},
    "curve/512/privunit": points(0.08, 0.85),
    "curve/512/gaussian": points(0.01, 0.04),
    "curve/128/privunit": points(0.10, 0.9),
    "averaging/privunit": {"4": {"rank-1": 0.3, "1-NN": 0.4, "centroid": 0.5, "epsilon": 16.0}},
    "membership/stage1": {"scores": {"AUC": around(0.6)}, "chance": {"AUC": 0.5}},
}


def test_figures_are_the_least_loss_the_cost_and_the_ratio() -> None:
    found = by_id(CELLS)
    figures = {name: (row["figure"], claims.reaches(row["figure"], row["bar"])) for name, row in found.items()}
    assert figures == {
        "stage1-identification": (5.0, False),  # centroid, which loses least of the three
        "stage1-map": (2.0, True),
        "alternating-identification": (20.0, True),
        "alternating-map": (10.0, False),
        "noise-512-person": (8.0, True),
        "noise-512-record": (21.2, True),
    }
    assert "loses least (centroid)" in found["stage1-identification"]["claim"]
    note = found["stage1-identification"]["note"]
    assert "softmax -20.0 [-21.0, -19.0]" in note
    assert "baseline: mAP 30.0 [29.0, 31.0] %" in note
    assert found["stage1-map"]["note"] == "paired interval 2.0 [1.0, 3.0]"
    assert (
        "PrivUnit 85.00 %, Gaussian 4.00 % (delta 1e-06), without noise 100.0 %, chance 0.14 %"
        in (found["noise-512-record"]["note"])
    )
    assert found["noise-512-person"]["bar"] == ">= 5"


def test_what_was_not_measured_or_is_invalid_is_not_claimed() -> None:
    assert rows({}) == withheld({}) == withheld(CELLS) == []
    broken = copy.deepcopy(CELLS)
    broken["model/stage1"]["identification"]["invalid"] = ["its softmax has not converged"]
    assert set(by_id(CELLS)) - set(by_id(broken)) == {"stage1-identification", "stage1-map"}
    assert withheld(broken) == ["identification of stage1 is INVALID: its softmax has not converged"]
    unclear = copy.deepcopy(CELLS)
    unclear["model/baseline"]["identification"]["invalid"] = ["it finds nobody in the originals"]
    assert set(by_id(unclear)) == {"noise-512-person", "noise-512-record"}


def test_the_page_has_the_tables_whose_cells_are_there() -> None:
    assert "|" not in tables({})
    text = tables(CELLS)
    for part in ("| **stage 1** (De-ID, pixelation + Adv-ID) | 28.0 [27.0, 29.0] |", "69.4 / 90.4 / 64.1",
                 "| stage 1, alternating adversary | -10.0 [-11.0, -9.0] |", "| paper | 0.5 | none |",
                 "62.5 / 79.3 / 41.1", "| privunit | 16 | 16 |", "| 512 | privunit | 40.0 | 16: 8.0 / 85.0 |",
                 "| privunit | 4 | 16.0 | 30.0 | 40.0 | 50.0 |", "0.600 [0.590, 0.610]", "3.5 to 3.5"):  # fmt: skip
        assert part in text, part


def test_every_form_is_one_that_the_study_trains() -> None:
    assert set(FORMS) <= set(CONFIG.changed)


RNG = Randomness.from_seed(0)


def test_noise_falls_by_the_root_of_the_number_of_releases() -> None:
    random, truth = np.random.default_rng(0), np.ones((200, 10))
    calls = []

    def release() -> np.ndarray:
        calls.append(1)
        return (truth + random.normal(size=truth.shape)).astype(np.float32)

    found = averaged_releases(release, (1, 4, 16))
    assert len(calls) == 16
    for count, vectors in found.items():
        assert (vectors - truth).std() == pytest.approx(1 / np.sqrt(count), rel=0.05)
    with pytest.raises(ConfigError, match="positive and rise"):
        averaged_releases(release, (4, 1))


def test_a_release_that_is_remembered_gains_nothing_by_averaging() -> None:
    held = np.random.default_rng(0).normal(size=(5, 3)).astype(np.float32)
    for vectors in averaged_releases(lambda: held, (1, 4, 16)).values():
        np.testing.assert_allclose(vectors, held, rtol=1e-6)


def test_togetherness_is_the_mean_cosine_of_pairs() -> None:
    features = np.random.default_rng(0).normal(size=(5, 4)).astype(np.float32)
    unit = features / np.linalg.norm(features, axis=1, keepdims=True)
    first = np.mean([unit[a] @ unit[b] for a, b in ((0, 1), (0, 3), (1, 3))])
    second = unit[2] @ unit[4]
    found = togetherness(features, np.array([7, 7, 2, 7, 2]))
    assert found == pytest.approx([second, first], abs=1e-6)
    with pytest.raises(DataError, match="two pictures of each person"):
        togetherness(features, np.array([1, 1, 2, 2, 3]))


def cloud(people: int, shots: int, spread: float, seed: int) -> tuple[np.ndarray, np.ndarray]:
    random = np.random.default_rng(seed)
    codes = np.repeat(np.arange(people), shots)
    centres = random.normal(size=(people, 12))[codes]
    return (centres + spread * random.normal(size=centres.shape)).astype(np.float32), codes


def test_training_people_are_told_where_they_lie_closer_together_and_not_otherwise() -> None:
    outside, others = cloud(60, 5, 0.6, 1)
    tight, codes = cloud(80, 4, 0.3, 2)
    scores, chance = feature_membership(tight, codes, outside, others + 1000, RNG)
    assert scores[0].metric == "AUC"
    assert scores[0].value > 0.9
    assert chance["AUC"] == 0.5
    same, codes = cloud(80, 4, 0.6, 3)
    scores, _ = feature_membership(same, codes, outside, others + 1000, RNG)
    assert scores[0].low is not None
    assert scores[0].high is not None
    assert scores[0].low <= 0.5 <= scores[0].high
