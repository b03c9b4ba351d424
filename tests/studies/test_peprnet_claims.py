"""The rows of claims that follow from the cells of PEPR-Net's study."""

from __future__ import annotations

import copy
from typing import Any

from benchmarks import claims
from studies.peprnet.claims import FORMS
from studies.shared.runner import load_study

STUDY = load_study("pepr")
CONFIG = STUDY.published


def rows(cells: dict[str, Any]) -> list[dict[str, Any]]:
    return STUDY.claims(cells, CONFIG)


def withheld(cells: dict[str, Any]) -> list[str]:
    return STUDY.withheld(cells, CONFIG)


def tables(cells: dict[str, Any], place: str = "peprnet") -> str:
    return STUDY.tables(cells, CONFIG)[place]


BY = ("softmax", "1-NN", "centroid")


def around(value: float, width: float = 0.01) -> list[float]:
    return [value, value - width, value + width]


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


def by_id(cells: dict[str, Any]) -> dict[str, dict[str, Any]]:
    return {row["id"].removeprefix("pepr-"): row for row in rows(cells)}


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
