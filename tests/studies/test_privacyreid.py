"""The study of PrivacyReID in the smallest: trainings, releases, recovery and attacks, each cell computed once."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest
from PIL import Image

from studies.privacyreid.feature_distribution import distribution, draw_distributions
from studies.privacyreid.plan import (
    LEARNED,
    STAGES,
    WITH,
    WITHOUT,
    PrivacyReidStudyConfig,
    study_settings,
)
from studies.privacyreid.figures import run_study
from studies.privacyreid.cells import PrivacyReidCells
from studies.privacyreid.tables import why
from studies.privacyreid.training import Trainings
from studies.shared.cells import CellStore
from tests.audit.folders import person
from tests.methods.anonymisers import TINY as METHOD
from veilkit.audit.inputs.cache import Cache
from veilkit.datasets.market1501 import load_market1501
from veilkit.errors import ConfigError, DataError, UnknownNameError
from veilkit.experts import load_expert
from veilkit.methods.privacyreid.method import SMALL
from veilkit.networks.reid import load_reid
from veilkit.progress import Progress

TINY = PrivacyReidStudyConfig(
    people=5, queries=1, gallery=2, public_people=5, public_pictures=2, training_people=7,
    method=replace(METHOD, psnr_slack=100, ssim_slack=100, rank1_slack=1), updates=6, batch=4, width=4,
    attacks=("stock_recogniser", "recovery", "stolen_decoder"), compared=("stock_recogniser",), shown=4,
)  # fmt: skip


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Eight people of the training part and five others to test on, by two cameras each."""
    root = tmp_path_factory.mktemp("people")
    for folder, people, shots in (
        ("bounding_box_train", range(8), range(3)),
        ("query", range(8, 13), range(1)),
        ("bounding_box_test", range(8, 13), range(1, 3)),
    ):
        (root / folder).mkdir()
        for who in people:
            for shot in shots:
                Image.fromarray(person(who, shot)).save(root / folder / f"{who + 1:04}_c{1 + shot % 2}_{shot}.png")
    return root


@contextmanager
def study(data: Path, folder: Path, config: PrivacyReidStudyConfig = TINY) -> Iterator[PrivacyReidCells]:
    judge = load_expert("histogram")
    facts = study_settings(config, judge, None)
    with Progress(config.cells(), "cells") as progress, Cache(folder / "features.sqlite") as cache:
        cells = CellStore(folder, facts, progress)
        yield PrivacyReidCells(
            load_market1501(data), folder, config, cells, judge=judge, cache=cache, init=None, workers=0
        )


@pytest.fixture(scope="module")
def done(data: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("study")
    with study(data, folder) as some:
        run_study(some)
    return folder


def cell(folder: Path, name: str) -> dict[str, Any]:
    result: dict[str, Any] = json.loads((folder / "cells" / f"{name}.json").read_text())["result"]
    return result


def apart(done: Path, made: Path) -> list[float]:
    """PSNR of the tested pictures below a folder, by hand."""
    found = []
    for part in ("query", "bounding_box_test"):
        for file in sorted((done / "originals" / part).iterdir()):
            both = [np.asarray(Image.open(root / part / file.name), dtype=np.float64) / 255
                    for root in (done / "originals", made)]  # fmt: skip
            found.append(-10 * np.log10(np.square(both[0] - both[1]).mean()))
    return found


@pytest.mark.slow
def test_a_study_writes_every_cell_table_figure_and_sheet(done: Path) -> None:
    assert len(list((done / "cells").glob("*.json"))) == TINY.cells()
    text = (done / "report.md").read_text()
    for words in ("Table 1", "Table 3", "Table 4", "Table 5", "Figure 9", "by a stranger, histogram", "INVALID"):
        assert words in text
    drawn = set(re.findall(r"\]\(([^)]+\.svg)\)", text))
    assert drawn == {file.name for file in done.glob("*.svg")}
    assert len(drawn) == 3
    with Image.open(done / "sheets" / "pixelate.png") as sheet:
        assert sheet.size[1] > 7 * 128  # original, desensitised, two anonymised, two recovered, and a stranger's
    for stage in STAGES:
        for by in ("own", "judge"):
            settings = cell(done, f"release.pixelate.{stage}")[by]["settings"]
            assert set(settings) == {"raw-raw", "raw-protected", "protected-raw", "protected-protected"}


@pytest.mark.slow
def test_cells_say_what_the_files_say(done: Path) -> None:
    for stage in STAGES:
        found = cell(done, f"release.pixelate.{stage}")["pictures"]["PSNR"][0]
        assert found == pytest.approx(np.mean(apart(done, done / "releases" / f"pixelate-{stage}")), abs=1e-3)
    for stage in LEARNED:
        found = cell(done, f"recovered.pixelate.{stage}")
        by_hand = apart(done, done / "recovered" / f"pixelate-{stage}")
        assert found["pictures"]["PSNR"][0] == pytest.approx(np.mean(by_hand), abs=1e-3)
        assert found["PSNR each"] == pytest.approx(by_hand, abs=1e-3)
    stolen = cell(done, "attack.pixelate.with.stolen_decoder")
    assert (stolen["level"], stolen["applicable"]) == ("L3", True)
    assert stolen["scores"]["PSNR"][0] == pytest.approx(cell(done, "recovered.pixelate.with")["pictures"]["PSNR"][0])


@pytest.mark.slow
def test_differences_are_those_of_the_tables(done: Path) -> None:
    order = cell(done, "order.pixelate")
    assert set(order) == {"with - without", "without - base"}
    for pair, found in order.items():
        first, second = (cell(done, f"release.pixelate.{stage}")["own"]["settings"] for stage in pair.split(" - "))
        for setting, change in found.items():
            for metric in ("rank-1", "mAP"):
                value, low, high = change[metric]
                assert value == pytest.approx(first[setting][metric][0] - second[setting][metric][0])
                assert low <= value <= high
    lock, attack = cell(done, "lock.pixelate"), cell(done, "attack.pixelate.with.recovery")
    own = cell(done, "recovered.pixelate.with")
    assert own["people"] == attack["people"]
    for metric in ("PSNR", "SSIM"):
        value, low, high = lock[metric]["decoder - U-Net"]
        assert value == pytest.approx(np.mean(own[f"{metric} each"]) - np.mean(attack[f"{metric} each"]), abs=1e-4)
        assert low <= value <= high


@pytest.mark.slow
def test_trainings_learn_from_training_people_and_share_what_they_can(done: Path, data: Path) -> None:
    checks = {stage: cell(done, f"training.pixelate.{stage}")["checks"] for stage in LEARNED}
    assert [check["action"] for check in checks[WITHOUT]] == ["off", "off"]
    assert checks[WITH][0]["action"] == "upgrade"
    for measured in ("psnr", "ssim", "rank1", "recovered_psnr"):  # the first check is taken over
        assert checks[WITH][0][measured] == checks[WITHOUT][0][measured]
    folder = done / "training" / "pixelate"
    assert not (folder / "without" / "checks").exists()
    samples = [sorted(file.name for file in (folder / stage / "samples").iterdir()) for stage in LEARNED]
    assert samples == [["epoch-0001.png", "epoch-0002.png"], ["epoch-0002.png"]]
    assert load_reid(folder / "base.expert.safetensors").config.backbone == METHOD.reid.backbone
    with study(data, done) as some:
        assert len(some.trainings("pixelate").split.identities) == 7


@pytest.mark.slow
def test_a_second_run_computes_nothing_and_another_study_is_refused(done: Path, data: Path) -> None:
    def times() -> dict[Path, int]:
        return {file: file.stat().st_mtime_ns for part in ("cells", "releases", "work", "sheets", "training")
                for file in (done / part).rglob("*")}  # fmt: skip

    before, text = times(), (done / "report.md").read_text()
    with study(data, done) as some:
        assert run_study(some).read_text() == text
        assert "subject" not in vars(some)  # not even the pictures were read
    assert times() == before
    with study(data, done, replace(TINY, updates=7)) as other, pytest.raises(DataError, match="updates differ"):
        other.training("pixelate", WITH)
    with study(data, done, replace(TINY, attacks=(), compared=())) as fewer:  # these belong to no other cell
        assert fewer.release("pixelate", WITH) == cell(done, "release.pixelate.with")


@pytest.mark.slow
def test_two_processes_train_the_same_bits(done: Path, data: Path, tmp_path: Path) -> None:
    with study(data, done) as some:
        split = some.trainings("pixelate").split
    configs = {stage: TINY.trained("pixelate", stage) for stage in STAGES}
    Trainings(split, configs, tmp_path, None).run(workers=2)
    for stage in STAGES:
        name = f"{stage}.expert.safetensors"
        assert (tmp_path / name).read_bytes() == (done / "training" / "pixelate" / name).read_bytes()


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"desensitise": ()}, "at least one of blur, pixelate and noise"),
        ({"attacks": ("recover",)}, "unknown attack"),
        ({"compared": ("stolen_decoder",)}, "have no decoder"),
        ({"public_people": 3}, "at least 4"),
        ({"queries": 0}, "at least 1"),
        ({"shown": 6}, "at most people"),
    ],
)
def test_a_wrong_configuration_is_refused_before_any_work(changes: dict[str, Any], message: str) -> None:
    with pytest.raises((ConfigError, UnknownNameError), match=message):
        replace(TINY, **changes)


def test_the_three_trainings_differ_in_nothing_else() -> None:
    config = PrivacyReidStudyConfig(desensitise=("blur",))
    base, without, upgraded = (config.trained("blur", stage) for stage in STAGES)
    assert base == upgraded
    assert replace(without, upgrade=True) == upgraded
    assert upgraded.baseline_epochs == upgraded.reid.epochs  # base has seen as much as ours
    assert replace(upgraded, reid=SMALL.reid, baseline_epochs=SMALL.baseline_epochs,
                   check_every=SMALL.check_every, desensitise=SMALL.desensitise) == SMALL  # fmt: skip


@pytest.mark.parametrize(
    ("check", "reason"),
    [
        ({"action": "off"}, "no upgradation"),
        ({"action": "keep", "private": False, "psnr": 3.0, "psnr_limit": 2.0, "ssim": 0.1, "ssim_limit": 0.2},
         "PSNR over the limit"),
        ({"action": "revert", "private": False, "psnr": 2.0, "psnr_limit": 2.0, "ssim": 0.3, "ssim_limit": 0.2},
         "PSNR and SSIM over the limit"),
        ({"action": "keep", "private": True, "rank1": 0.2, "rank1_to_beat": 0.2}, "private, but"),
        ({"action": "upgrade", "private": True, "rank1": 0.3, "rank1_to_beat": 0.2}, "private, and"),
    ],
)  # fmt: skip
def test_the_log_says_why(check: dict[str, Any], reason: str) -> None:
    assert why(check).startswith(reason)


def test_distances_of_features_that_are_known(tmp_path: Path) -> None:
    """Three people on three axes; protected pictures are turned towards the next axis by a right angle, or not."""
    people = np.repeat(np.arange(3), 4)
    raw = np.eye(3, dtype=np.float32)[people] * np.linspace(1, 2, 12, dtype=np.float32)[:, None]
    turned = np.roll(raw, 1, axis=1)
    same, moved = (distribution(raw, each, people, shown=2, seed=0) for each in (raw, turned))
    assert same["own"] == pytest.approx(0, abs=1e-6)
    assert moved["own"] == pytest.approx(1)
    for found in (same, moved):
        assert found["raw"] == pytest.approx([0, 1], abs=1e-6)
        assert found["protected"] == pytest.approx([0, 1], abs=1e-6)
        assert found["silhouette"]["raw"] == pytest.approx(1)
        assert found["places"]["people"] == [0] * 4 + [1] * 4
        assert np.ptp(found["places"]["raw"] + found["places"]["protected"]) <= 1
    assert same["crossed"] == pytest.approx([0, 1], abs=1e-6)
    assert moved["crossed"] == pytest.approx([1, 0.5], abs=1e-6)  # every other stranger stands where one has been
    draw_distributions(tmp_path / "figure.svg", "a < b", {"(a) x & y": same, "(b)": moved})
    root = ElementTree.fromstring((tmp_path / "figure.svg").read_text())
    dots = list(root.iter("{http://www.w3.org/2000/svg}circle"))
    assert len(dots) == 2 * 2 * 8
    assert sum(dot.get("fill") == "none" for dot in dots) == len(dots) // 2
