"""The rows of claims that follow from the cells of PixelFade's study."""

from __future__ import annotations

import copy
from typing import Any

import claims
from pixelfade_study import rows, withheld


def recovered(ssim: float) -> dict[str, Any]:
    return {
        "scores": {"SSIM": [ssim, ssim - 0.01, ssim + 0.01]},
        "mean image": {"SSIM": 0.2},
        "invalid": [],
        "reason": "",
    }


def outlined(area: float) -> dict[str, Any]:
    return {"scores": {"AUC beyond place": [area, area - 0.01, area + 0.01]}, "invalid": [], "reason": ""}


def released(pp: float, op: float) -> dict[str, Any]:
    settings = {"raw-raw": 0.8, "protected-protected": 0.8 + pp, "raw-protected": 0.8 + op}
    return {
        "expert": {
            "settings": {name: {"rank-1": [value, value - 0.1, value + 0.1]} for name, value in settings.items()},
            "change": {
                "protected-protected": {"rank-1": [pp, pp - 0.02, pp + 0.01]},
                "raw-protected": {"rank-1": [op, op - 0.02, op + 0.01]},
            },
        },
        "ledger": {"held": [0.995, 0.98, 0.999], "pictures": 800, "steps": 50.2},
    }


CELLS = {
    "release/pixelfade": released(-0.055, -0.045),
    "recovery/pixelfade": recovered(0.10),
    "recovery/avih": recovered(0.30),
    "recovery/pixelate": recovered(0.35),
    "recovery/blur": recovered(0.50),
    "order": {
        "avih - pixelfade": [0.2, 0.15, 0.25],
        "pixelate - avih": [0.05, -0.01, 0.1],
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
}


def by_id(cells: dict[str, Any]) -> dict[str, dict[str, Any]]:
    return {row["id"]: row for row in rows(cells)}


def test_figures_are_losses_shares_and_the_worst_bound() -> None:
    found = by_id(CELLS)
    figures = {name: (row["figure"], claims.reaches(row["figure"], row["bar"])) for name, row in found.items()}
    assert figures == {
        "pixelfade-pp": (5.5, True),
        "pixelfade-op": (4.5, False),
        "pixelfade-held": (99.5, True),
        "pixelfade-recovery-order": (-0.01, False),
        "pixelfade-outline": (-0.05, True),  # against paper, the harder one to be below of
    }
    assert "[4.5, 7.5]" in found["pixelfade-pp"]["note"]
    assert "mean image 0.200" in found["pixelfade-recovery-order"]["note"]
    assert "floor 0.500" in found["pixelfade-outline"]["note"]


def test_what_was_not_measured_or_is_invalid_is_not_claimed() -> None:
    assert rows({}) == withheld({}) == withheld(CELLS) == []
    cells = {name: cell for name, cell in CELLS.items() if name != "recovery/blur"}
    assert "pixelfade-recovery-order" not in by_id(cells)
    broken: dict[str, Any] = copy.deepcopy(CELLS)
    broken["recovery/avih"]["invalid"] = ["its loss still fell"]
    assert set(by_id(CELLS)) - set(by_id(broken)) == {"pixelfade-recovery-order"}
    assert withheld(broken) == ["recovery/avih is INVALID: its loss still fell"]
    broken["outline/paper"]["invalid"] = ["it found nothing"]
    assert set(by_id(CELLS)) - set(by_id(broken)) == {"pixelfade-recovery-order", "pixelfade-outline"}
