"""The study of PEPR-Net in the smallest: trainings, features, noise and attacks, each cell computed once."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image

from studies.peprnet.data import TestPart
from studies.peprnet.measures import averaging, curve, noised
from studies.peprnet.plan import BASELINE, MODELS, STAGE1, WIDE, PeprStudyConfig, study_settings
from studies.peprnet.figures import run_study
from studies.peprnet.rivals import heads_blurred
from studies.peprnet.cells import PeprCells
from studies.shared.cells import CellStore
from tests.audit.folders import person
from tests.methods.peprnets import TINY as METHOD
from veilkit.audit.inputs.cache import Cache
from veilkit.checkpoint import save_checkpoint
from veilkit.datasets.market1501 import load_market1501
from veilkit.errors import ConfigError, DataError, UnknownNameError
from veilkit.experts import load_expert
from veilkit.networks.backbones import BACKBONE_KIND, build_backbone
from veilkit.privacy import PrivUnit
from veilkit.progress import Progress

TINY = PeprStudyConfig(
    people=8, training_people=6, method=replace(METHOD, epochs=1), models=(BASELINE, "clean", STAGE1, WIDE),
    noisy=(STAGE1,), epsilons=(2.0, 16.0), paper_epsilons=(1.0,), mechanisms=("privunit", "gaussian"),
    curve_epsilons=(2.0, 16.0), draws=2, averaged=("privunit",), reconstructed=(STAGE1,), attacked=30, updates=6,
    batch=4, width=4, drawn=3, dp_epochs=1,
)  # fmt: skip


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Six people of the training part and nine others to test on, by two cameras each."""
    root = tmp_path_factory.mktemp("people")
    for folder, people, shots in (
        ("bounding_box_train", range(6), range(4)),
        ("query", range(6, 15), range(1)),
        ("bounding_box_test", range(6, 15), range(1, 5)),
    ):
        (root / folder).mkdir()
        for who in people:
            for shot in shots:
                Image.fromarray(person(who, shot)).save(root / folder / f"{who + 1:04}_c{1 + shot % 2}_{shot}.png")
    return root


@pytest.fixture(scope="module")
def init(tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("init") / "backbone.safetensors"
    with torch.random.fork_rng():
        torch.manual_seed(0)
        backbone = build_backbone(METHOD.backbone, size=METHOD.size)
    assert isinstance(backbone, torch.nn.Module)
    save_checkpoint(file, backbone.state_dict(), {"backbone": METHOD.backbone}, BACKBONE_KIND)
    return file


@contextmanager
def study(data: Path, folder: Path, init: Path, config: PeprStudyConfig = TINY) -> Iterator[PeprCells]:
    judge = load_expert("histogram")
    facts = study_settings(config, judge, init)
    with Progress(config.cells(), "cells") as progress, Cache(folder / "features.sqlite") as cache:
        cells = CellStore(folder, facts, progress)
        yield PeprCells(load_market1501(data), folder, config, cells, judge=judge, cache=cache, init=init)


@pytest.fixture(scope="module")
def done(data: Path, init: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    pytest.importorskip("opacus")
    folder = tmp_path_factory.mktemp("study")
    with study(data, folder, init) as some:
        run_study(some)
    return folder


def cell(folder: Path, name: str) -> dict[str, Any]:
    result: dict[str, Any] = json.loads((folder / "cells" / f"{name}.json").read_text())["result"]
    return result


@pytest.mark.slow
def test_a_study_writes_every_cell_table_and_figure(done: Path) -> None:
    assert len(list((done / "cells").glob("*.json"))) == TINY.cells()
    text = (done / "report.md").read_text()
    for words in ("Table 1", "Tables 2 to 4", "Rank-1 against epsilon", "Repeated releases", "Membership", "Rivals"):
        assert words in text
    drawn = set(re.findall(r"\]\(([^)]+\.svg)\)", text))
    assert drawn == {file.name for file in done.glob("*.svg")}
    assert len(drawn) == 3
    with Image.open(done / "sheets" / "reconstructed.png") as sheet:
        assert sheet.size[1] > 3 * 128  # originals, and what was decoded without and with noise
    for name in TINY.models:
        found = cell(done, f"model.{name}")
        assert set(found["utility"]) == {"rank-1", "mAP"}
        assert set(found["identification"]["each"]) == {"softmax", "1-NN", "centroid"}
        assert len(found["identification"]["people"]) == 8


@pytest.mark.slow
def test_differences_are_those_of_the_cells(done: Path) -> None:
    first, second = (cell(done, f"model.{name}") for name in (STAGE1, BASELINE))
    changed = cell(done, f"change.{STAGE1}")
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
def test_noise_is_proved_or_said_not_to_be(done: Path) -> None:
    assert cell(done, f"stage2.{STAGE1}.privunit.16")["proved"] == 16.0
    assert cell(done, f"stage2.{STAGE1}.gaussian.2")["proved"] == 2.0
    assert cell(done, f"stage2.{STAGE1}.paper.1")["proved"] is None
    assert "no guarantee" in (done / "rank-1-epsilon.svg").read_text()


@pytest.mark.slow
def test_a_second_run_computes_nothing_and_another_study_is_refused(done: Path, data: Path, init: Path) -> None:
    def times() -> dict[Path, int]:
        return {file: file.stat().st_mtime_ns for part in ("cells", "features", "models", "sheets", "training")
                for file in (done / part).rglob("*")}  # fmt: skip

    before, text = times(), (done / "report.md").read_text()
    with study(data, done, init) as some:
        assert run_study(some).read_text() == text
        assert "part" not in vars(some)  # not even the pictures were read
    assert times() == before
    with (
        study(data, done, init, replace(TINY, draws=3)) as other,
        pytest.raises(DataError, match="draws differ"),
    ):
        other.training(BASELINE)
    with study(data, done, init, replace(TINY, epsilons=(16.0,))) as fewer:  # these belong to no other cell
        assert fewer.model(STAGE1) == cell(done, f"model.{STAGE1}")


@pytest.mark.slow
def test_a_model_that_is_gone_is_told(done: Path, data: Path, init: Path, tmp_path: Path) -> None:
    (tmp_path / "cells").mkdir()
    name = "training.baseline.json"
    (tmp_path / "cells" / name).write_bytes((done / "cells" / name).read_bytes())
    with study(data, tmp_path, init) as some, pytest.raises(ConfigError, match="delete that cell"):
        some.features(BASELINE)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"models": (STAGE1,)}, "models must hold baseline"),
        ({"models": (BASELINE, "stage3")}, "unknown encoder"),
        ({"mechanisms": ("paper",)}, "sound ones"),
        ({"rivals": ("federated",)}, "rivals must be some of"),
        ({"people": 3}, "people must be at least 8"),
        ({"draws": 0}, "at least 1"),
    ],
)
def test_a_wrong_configuration_is_refused_before_any_work(changes: dict[str, Any], message: str) -> None:
    with pytest.raises((ConfigError, UnknownNameError), match=message):
        replace(TINY, **changes)


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
    expected = torch.from_numpy(person(6, 0)).permute(2, 0, 1).float() / 255
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
