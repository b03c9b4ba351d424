"""The rows of claims that follow from the cells of PrivacyReID's study."""

from __future__ import annotations

import copy
from typing import Any

from benchmarks import claims
from studies.shared.runner import load_study

STUDY = load_study("privacyreid")
CONFIG = STUDY.published


def rows(cells: dict[str, Any]) -> list[dict[str, Any]]:
    return STUDY.claims(cells, CONFIG)


def withheld(cells: dict[str, Any]) -> list[str]:
    return STUDY.withheld(cells, CONFIG)


def tables(cells: dict[str, Any], place: str = "privacyreid") -> str:
    return STUDY.tables(cells, CONFIG)[place]


SETTINGS = ("raw-raw", "raw-protected", "protected-raw", "protected-protected")


def around(value: float, width: float = 0.01) -> list[float]:
    return [value, value - width, value + width]


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


def by_id(cells: dict[str, Any]) -> dict[str, dict[str, Any]]:
    return {row["id"].removeprefix("privacyreid-"): row for row in rows(cells)}


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
