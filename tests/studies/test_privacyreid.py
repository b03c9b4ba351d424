"""The study of PrivacyReID in the smallest: trainings, releases, recovery and attacks, each cell computed once."""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest
from PIL import Image

from benchmarks import claims
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
from tests.studies.conftest import Published, around
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


PUBLISHED = Published("privacyreid", prefix="privacyreid-")
STUDY, CONFIG = PUBLISHED.study, PUBLISHED.config
rows, by_id, withheld, tables = PUBLISHED.rows, PUBLISHED.by_id, PUBLISHED.withheld, PUBLISHED.tables


SETTINGS = ("raw-raw", "raw-protected", "protected-raw", "protected-protected")


def matched(protected: float, raw: float = 0.8) -> dict[str, Any]:
    values = {setting: raw if setting == "raw-raw" else protected for setting in SETTINGS}
    return {
        "settings": {name: {metric: around(value) for metric in ("rank-1", "mAP")} for name, value in values.items()},
        "recogniser": "somebody",
    }


def measured(psnr: float, ssim: float, own: float = 0.5, judge: float = 0.1) -> dict[str, Any]:
    return {"own": matched(own), "judge": matched(judge), "pictures": {"PSNR": around(psnr), "SSIM": around(ssim)}}


def attack(level: str, **scores: float) -> dict[str, Any]:
    return {
        "level": level,
        "applicable": True,
        "reason": "",
        "invalid": [],
        "scores": {
            name.replace("_", " ").replace("rank 1", "rank-1"): around(value) for name, value in scores.items()
        },
        "chance": {"rank-1": 0.01},
        "mean image": {},
    }


def changed(value: float, low: float) -> dict[str, Any]:
    return {setting: {"rank-1": [value, low, value + 0.1]} for setting in SETTINGS}


CHECK = {
    "epoch": 4, "action": "keep", "private": True, "supervision": "desensitised", "psnr": 17.0, "ssim": 0.4,
    "rank1": 0.31, "recovered_psnr": 24.0, "recovered_ssim": 0.9, "psnr_limit": 18.0, "ssim_limit": 0.5,
    "rank1_to_beat": 0.33,
}  # fmt: skip
CELLS: dict[str, Any] = {
    "release/pixelate/base": measured(17.0, 0.50, own=0.3),
    "release/pixelate/without": measured(17.4, 0.53, own=0.4),
    "release/pixelate/with": measured(18.2, 0.54, own=0.5),
    "recovered/pixelate/without": measured(25.0, 0.92),
    "recovered/pixelate/with": measured(24.5, 0.84),
    "order/pixelate": {"with - without": changed(0.1, 0.02), "without - base": changed(0.1, -0.03)},
    "training/pixelate/with": {"checks": [CHECK]},
    "attack/pixelate/with/stock_recogniser": attack("L0", rank_1=0.16),
    "attack/pixelate/with/recovery": attack("L1", rank_1=0.7, person_rank_1=0.6, PSNR=23.0, SSIM=0.81),
    "attack/pixelate/base/recovery": attack("L1", rank_1=0.2, person_rank_1=0.1, PSNR=18.0, SSIM=0.52),
    "lock/pixelate": {"PSNR": {"decoder - U-Net": [1.5, 1.25, 1.75]}},
}


def informed(cells: dict[str, Any]) -> str:
    return tables(cells, "privacyreid attackers")


def test_figures_are_means_differences_shares_and_the_worst_bound() -> None:
    found = by_id(CELLS)
    figures = {name: (row["figure"], claims.reaches(row["figure"], row["bar"])) for name, row in found.items()}
    assert figures == {
        "recovered-psnr": (24.5, True),
        "recovered-ssim": (0.84, False),
        "anonymised-psnr": (1.2, False),
        "anonymised-ssim": (0.04, True),
        "order": (-3.0, False),  # without - base, of the two the less sure
        "stock": (0.2, True),
    }
    assert "without upgradation 25.00 [24.99, 25.01]" in found["recovered-psnr"]["note"]
    assert "base 17.00" in found["anonymised-psnr"]["note"]
    assert "with - without 10.0 [2.0, 20.0]" in found["order"]["note"]
    assert "base 30.0 [29.0, 31.0] %" in found["order"]["note"]
    assert found["stock"]["note"] == "raw 80.0 [79.0, 81.0] %, protected 16.0 [15.0, 17.0] %, chance 1.0 %"


def test_what_was_not_measured_or_is_invalid_is_not_claimed() -> None:
    assert rows({}) == withheld({}) == withheld(CELLS) == []
    assert set(by_id({"recovered/pixelate/with": measured(20, 0.5)})) == {"recovered-psnr", "recovered-ssim"}
    broken = copy.deepcopy(CELLS)
    broken["attack/pixelate/with/stock_recogniser"]["invalid"] = ["it finds nobody in the originals"]
    assert set(by_id(CELLS)) - set(by_id(broken)) == {"stock"}
    assert withheld(broken) == [
        "attack/pixelate/with/stock_recogniser is INVALID: it finds nobody in the originals"
    ]  # fmt: skip


def test_the_pages_have_the_tables_whose_cells_are_there() -> None:
    assert "|" not in tables({})
    assert informed({}) == "Not measured yet."
    text = tables(CELLS)
    for part in ("| ours, with upgradation | 50.0 [49.0, 51.0] / 50.0", "| without - base | 10.0 [-3.0, 20.0] |",
                 "| 4 | 17.00 (< 18.00) | 0.400 (< 0.500) | 31.0 (> 33.0) |", "private, but Rank-1 no better",
                 "| raw | 80.0 [79.0, 81.0]", "0.840 [0.830, 0.850]", "`recovery` (L1)"):  # fmt: skip
        assert part in text, part
    assert text.index("base (desensitised)") < text.index("ours, without") < text.index("ours, with upgradation")
    table = informed(CELLS)
    assert "| the decoder, with authority | 24.50 [24.49, 24.51] | 0.840 [0.830, 0.850] |" in table
    assert "(`recovery`, L1) | 23.00 [22.99, 23.01] | 0.810 [0.800, 0.820] | 70.0 [69.0, 71.0] | 60.0" in table
    assert "PSNR, dB 18.00 [17.99, 18.01], SSIM 0.520" in table
    assert "| decoder - U-Net | 1.5000 [1.2500, 1.7500] |" in table
    broken = copy.deepcopy(CELLS)
    broken["attack/pixelate/with/recovery"]["invalid"] = ["its loss still fell"]
    assert "decoder - U-Net" not in informed(broken)  # an attacker who has not learned opens no lock
    assert "INVALID: its loss still fell" in informed(broken)
