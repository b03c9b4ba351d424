"""The study of PrivacyReID in the smallest: trainings, releases, recovery and attacks, each cell computed once."""

from __future__ import annotations

from collections.abc import Callable
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
)
from studies.privacyreid.tables import why
from studies.privacyreid.training import Trainings
from tests.studies.harness import TINY_STUDIES, Done
from veilkit.methods.privacyreid.config import SMALL
from veilkit.networks.reid import load_reid


def apart(folder: Path, changed: Path) -> list[float]:
    """PSNR of the tested pictures below a folder, by hand."""
    found = []
    for part in ("query", "bounding_box_test"):
        for file in sorted((folder / "originals" / part).iterdir()):
            both = [np.asarray(Image.open(root / part / file.name), dtype=np.float64) / 255
                    for root in (folder / "originals", changed)]  # fmt: skip
            found.append(-10 * np.log10(np.square(both[0] - both[1]).mean()))
    return found


TINY, METHOD = TINY_STUDIES["privacyreid"].config, TINY_STUDIES["privacyreid"].config.method
Find = Callable[[str], Done]


@pytest.mark.slow
def test_a_sheet_has_every_stage(done: Find) -> None:
    made = done("privacyreid")
    assert len(list(made.folder.glob("*.svg"))) == 3
    with Image.open(made.folder / "sheets" / "pixelate.png") as sheet:
        assert sheet.size[1] > 7 * 128  # original, desensitised, two anonymised, two recovered, and a stranger's
    for stage in STAGES:
        for by in ("own", "judge"):
            settings = made.cell(f"release/pixelate/{stage}")[by]["settings"]
            assert set(settings) == {"raw-raw", "raw-protected", "protected-raw", "protected-protected"}
    with made.open(attacks=(), compared=()) as fewer:  # these belong to no other cell
        assert fewer.release("pixelate", WITH) == made.cell("release/pixelate/with")
        assert "originals" not in vars(fewer)  # not even the pictures were read


@pytest.mark.slow
def test_cells_say_what_the_files_say(done: Find) -> None:
    made = done("privacyreid")
    for stage in STAGES:
        found = made.cell(f"release/pixelate/{stage}")["pictures"]["PSNR"][0]
        assert found == pytest.approx(
            np.mean(apart(made.folder, made.folder / "releases" / f"pixelate-{stage}")), abs=1e-3
        )
    for stage in LEARNED:
        found = made.cell(f"recovered/pixelate/{stage}")
        by_hand = apart(made.folder, made.folder / "recovered" / f"pixelate-{stage}")
        assert found["pictures"]["PSNR"][0] == pytest.approx(np.mean(by_hand), abs=1e-3)
        assert found["PSNR each"] == pytest.approx(by_hand, abs=1e-3)
    stolen = made.cell("attack/pixelate/with/stolen_decoder")
    assert (stolen["level"], stolen["applicable"]) == ("L3", True)
    assert stolen["scores"]["PSNR"][0] == pytest.approx(made.cell("recovered/pixelate/with")["pictures"]["PSNR"][0])


@pytest.mark.slow
def test_differences_are_those_of_the_tables(done: Find) -> None:
    made = done("privacyreid")
    order = made.cell("order/pixelate")
    assert set(order) == {"with - without", "without - base"}
    for pair, found in order.items():
        first, second = (made.cell(f"release/pixelate/{stage}")["own"]["settings"] for stage in pair.split(" - "))
        for setting, change in found.items():
            for metric in ("rank-1", "mAP"):
                value, low, high = change[metric]
                assert value == pytest.approx(first[setting][metric][0] - second[setting][metric][0])
                assert low <= value <= high
    lock, attack = made.cell("lock/pixelate"), made.cell("attack/pixelate/with/recovery")
    own = made.cell("recovered/pixelate/with")
    assert own["people"] == attack["people"]
    for metric in ("PSNR", "SSIM"):
        value, low, high = lock[metric]["decoder - U-Net"]
        assert value == pytest.approx(np.mean(own[f"{metric} each"]) - np.mean(attack[f"{metric} each"]), abs=1e-4)
        assert low <= value <= high


@pytest.mark.slow
def test_trainings_learn_from_training_people_and_share_what_they_can(done: Find) -> None:
    made = done("privacyreid")
    checks = {stage: made.cell(f"training/pixelate/{stage}")["checks"] for stage in LEARNED}
    assert [check["action"] for check in checks[WITHOUT]] == ["off", "off"]
    assert checks[WITH][0]["action"] == "upgrade"
    for measured in ("psnr", "ssim", "rank1", "recovered_psnr"):  # the first check is taken over
        assert checks[WITH][0][measured] == checks[WITHOUT][0][measured]
    folder = made.folder / "training" / "pixelate"
    assert not (folder / "without" / "checks").exists()
    samples = [sorted(file.name for file in (folder / stage / "samples").iterdir()) for stage in LEARNED]
    assert samples == [["epoch-0001.png", "epoch-0002.png"], ["epoch-0002.png"]]
    assert load_reid(folder / "base.expert.safetensors").config.backbone == METHOD.reid.backbone
    with made.open() as some:
        assert len(some.trainings("pixelate").split.identities) == 7


@pytest.mark.slow
def test_two_processes_train_the_same_bits(done: Find, tmp_path: Path) -> None:
    made = done("privacyreid")
    with made.open() as some:
        split = some.trainings("pixelate").split
    configs = {stage: TINY.trained("pixelate", stage) for stage in STAGES}
    Trainings(split, configs, tmp_path, None).run(workers=2)
    for stage in STAGES:
        name = f"{stage}.expert.safetensors"
        assert (tmp_path / name).read_bytes() == (made.folder / "training" / "pixelate" / name).read_bytes()


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
