"""The rows of claims that follow from the cells of PixelFade's study."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from benchmarks import claims
from tests.studies.conftest import Published

PUBLISHED = Published("pixelfade")
STUDY, CONFIG = PUBLISHED.study, PUBLISHED.config
rows, by_id, withheld, tables = PUBLISHED.rows, PUBLISHED.by_id, PUBLISHED.withheld, PUBLISHED.tables


def recovered(ssim: float) -> dict[str, Any]:
    return {
        "scores": {"SSIM": [ssim, ssim - 0.01, ssim + 0.01], "rank-1": [0.02, 0.01, 0.03]},
        "mean image": {"SSIM": 0.2},
        "chance": {},
        "level": "L1",
        "applicable": True,
        "invalid": [],
        "reason": "",
    }


def outlined(area: float) -> dict[str, Any]:
    scores = {metric: [area, area - 0.01, area + 0.01] for metric in ("AUC beyond place", "AUC, energy")}
    return {"scores": scores, "invalid": [], "reason": ""}


def released(pp: float, op: float) -> dict[str, Any]:
    values = {"raw-raw": 0.8, "protected-protected": 0.8 + pp, "raw-protected": 0.8 + op, "protected-raw": 0.7}
    settings = {
        name: {metric: [value, value - 0.1, value + 0.1] for metric in ("rank-1", "mAP")}
        for name, value in values.items()
    }
    change = {"protected-protected": pp, "raw-protected": op, "protected-raw": -0.1}
    return {
        "expert": {
            "settings": settings,
            "change": {name: {"rank-1": [value, value - 0.02, value + 0.01]} for name, value in change.items()},
        },
        "judge": {"settings": settings},
        "pictures": {metric: [0.125, 0.12, 0.13] for metric in ("AD", "SSIM", "PSNR")},
        "ledger": {
            "held": [0.995, 0.98, 0.999], "pictures": 800, "steps": 50.2, "feature distance": 75.0, "limit": 76.0,
        },
    }  # fmt: skip


CELLS = {
    "release/pixelfade": released(-0.055, -0.045),
    "recovery/pixelfade": recovered(0.10),
    "recovery/avih-released": recovered(0.30),
    "recovery/pixelate": recovered(0.35),
    "recovery/blur": recovered(0.50),
    "order": {
        "avih-released - pixelfade": [0.2, 0.15, 0.25],
        "pixelate - avih-released": [0.05, -0.01, 0.1],
        "blur - pixelate": [0.15, 0.1, 0.2],
    },
    "outline/pixelfade": outlined(0.51),
    "outline/paper": outlined(0.58),
    "outline/released": outlined(0.70),
    "outline/floor": outlined(0.50),
    "outlines": {
        "pixelfade - paper": [-0.07, -0.09, -0.05],
        "pixelfade - released": [-0.19, -0.21, -0.17],
        "pixelfade - floor": [0.01, 0.0, 0.02],
    },
    "energies": {"pixelfade - paper": [-0.02, -0.04, 0.01], "pixelfade - released": [-0.3, -0.4, -0.2]},
}


def avih(cells: dict[str, Any]) -> str:
    return tables(cells, "avih")


def test_figures_are_losses_shares_and_the_worst_bound() -> None:
    found = by_id(CELLS)
    figures = {name: (row["figure"], claims.reaches(row["figure"], row["bar"])) for name, row in found.items()}
    assert figures == {
        "pixelfade-pp": (5.5, True),
        "pixelfade-op": (4.5, False),
        "pixelfade-held": (99.5, True),
        "pixelfade-recovery-order": (-0.01, False),
        "pixelfade-outline": (-0.05, True),  # against paper, the harder one to be below of
        "pixelfade-outline-energy": (0.01, False),
    }
    assert "[4.5, 7.5]" in found["pixelfade-pp"]["note"]
    assert "mean image 0.200" in found["pixelfade-recovery-order"]["note"]
    assert "floor 0.500" in found["pixelfade-outline"]["note"]


def test_the_quicker_preset_is_compared_picture_by_picture() -> None:
    cells = {
        **CELLS,
        "release/released": released(-0.2, -0.1),
        "recovery/released": recovered(0.20),
        "preset recovery": {"pixelfade - released": [-0.13333, -0.2, -0.05]},
    }
    row = by_id(cells)["pixelfade-preset-recovery"]
    assert row["figure"] == pytest.approx(-0.4 / 3, abs=1e-4)
    assert "paired interval [-0.2000, -0.0500]" in row["note"]
    assert "released, protected to protected, 60.0" in row["note"]
    assert "pixelfade-preset-recovery" not in by_id(CELLS)


def test_a_pair_against_the_order_is_named() -> None:
    assert "against the order" not in by_id(CELLS)["pixelfade-recovery-order"]["note"]  # an interval around 0
    turned = {**CELLS, "order": {**CELLS["order"], "pixelate - avih-released": [-0.05, -0.06, -0.04]}}
    assert "against the order: pixelate - avih-released" in by_id(turned)["pixelfade-recovery-order"]["note"]


def test_another_backbone_has_rows_of_its_own() -> None:
    found = by_id({**CELLS, "backbone/other": released(-0.07, 0.02)})
    assert {name: row["figure"] for name, row in found.items() if name.endswith("-other")} == {
        "pixelfade-pp-other": 7.0,
        "pixelfade-op-other": -2.0,
        "pixelfade-held-other": 99.5,
    }
    assert found["pixelfade-pp"]["figure"] == 5.5
    assert "under other" in found["pixelfade-pp-other"]["claim"]


def test_what_was_not_measured_or_is_invalid_is_not_claimed() -> None:
    assert rows({}) == withheld({}) == withheld(CELLS) == []
    cells = {name: cell for name, cell in CELLS.items() if name != "recovery/blur"}
    assert "pixelfade-recovery-order" not in by_id(cells)
    broken: dict[str, Any] = copy.deepcopy(CELLS)
    broken["recovery/avih-released"]["invalid"] = ["its loss still fell"]
    assert "INVALID: its loss still fell" in by_id(broken)["pixelfade-recovery-order"]["note"]  # it falls short
    broken["order"]["pixelate - avih-released"] = [0.05, 0.01, 0.1]
    assert set(by_id(CELLS)) - set(by_id(broken)) == {"pixelfade-recovery-order"}
    assert withheld(broken) == ["recovery/avih-released is INVALID: its loss still fell"]
    broken["outline/paper"]["invalid"] = ["it found nothing"]
    assert set(by_id(CELLS)) - set(by_id(broken)) == {"pixelfade-recovery-order", "pixelfade-outline"}


def test_the_page_has_the_tables_whose_cells_are_there() -> None:
    assert "|" not in tables({})
    first = tables({"release/pixelfade": CELLS["release/pixelfade"]})
    assert "| PixelFade (ours) | 74.5 [64.5, 84.5] / 74.5 [64.5, 84.5] |" in first
    assert "recovery" not in first
    cells = {
        **CELLS,
        "release/avih": released(-0.3, -0.2),
        "attack/averaging": recovered(0.11),
        "grid/base": released(-0.1, -0.1),
        "grid/masks-2": released(-0.2, -0.1),
        "backbone/other": released(0, 0),
    }
    text = tables(cells)
    assert text.index("PixelFade (ours)") < text.index("AVIH")  # the study's order, not the files'
    assert "| blur |" not in text  # its recovery is there, its release is not
    wanted = (
        "0.110 [0.100, 0.120]", "noise alone (floor)", "| pixelate - avih-released | 0.0500 [-0.0100, 0.1000] |",
        "**Figure 5d: masks**\n", "| other | 80.0",
    )  # fmt: skip
    for part in wanted:
        assert part in text, part
    beside = avih(cells)
    assert "| AVIH | 50.0" in beside
    assert "| PixelFade (ours) | 0.1 [0.1, 0.1] | 0.100" in beside
    assert "Nothing yet" in avih(CELLS)
