"""The rows of claims that follow from the cells of Disguise's study."""

from __future__ import annotations

import copy
from typing import Any

from benchmarks import claims
from studies.disguise.plan import JUDGE, rows_of
from tests.studies.conftest import Published, around

PUBLISHED = Published("disguise", prefix="disguise-")
STUDY, CONFIG = PUBLISHED.study, PUBLISHED.config
rows, by_id, withheld, tables = PUBLISHED.rows, PUBLISHED.by_id, PUBLISHED.withheld, PUBLISHED.tables
ROWS = rows_of(CONFIG)


def recognised(tpr: float, farthest: float = 0.01) -> dict[str, Any]:
    rates = {"0.01": around(tpr), "0.001": around(tpr / 10)}
    return {
        "TPR": rates, "TPR, own threshold": rates, "own": rates, "accuracy": around(0.5),
        "farthest": {"0.01": around(farthest), "0.001": around(farthest / 10)},
    }  # fmt: skip


def inverted(tpr: float) -> dict[str, Any]:
    scores = {"rank-1": around(0.1), "TPR at FPR 0.01": around(tpr), "TPR at FPR 0.001": around(tpr / 10)}
    return {"level": "L1", "applicable": True, "reason": "", "invalid": [], "scores": scores, "chance": {}}


def judged(landmarks: float, gaze: float, expression: float) -> dict[str, Any]:
    values = {"landmarks": landmarks, "gaze": gaze, "expression": expression}
    return {
        **{
            kind: {"judge": f"the {kind} judge", "mean": around(value), "found": 1.0}
            for kind, value in values.items()
        },
        "quality": {"mean": around(0.9)},
    }


def apart(value: float) -> dict[str, list[float]]:
    return {"0.01": [value, value - 0.05, value + 0.05], "0.001": around(value)}


TPR = {"original": 0.95, "stranger": 0.01, "blur": 0.4, "pixelate": 0.2, "replace": 0.02, "opp": 0.0, "mlp": 0.01,
       "ved": 0.02}  # fmt: skip
CELLS: dict[str, Any] = {
    "pictures": {
        "pictures": 90, "people": 40, "public people": 30,
        "trained together": {"opp": False, "mlp": False, "ved": True},
    },
    **{f"verified/{name}/{JUDGE}": recognised(TPR[name]) for name in ROWS},
    **{f"inverted/{name}/{JUDGE}": inverted(0.3) for name in CONFIG.inverted},
    f"order/{JUDGE}": {"opp - mlp": apart(0.2), "mlp - ved": apart(0.1), "ved@0.5 - ved@8": apart(0.03),
                      "mlp@0.5 - mlp@8": apart(0.06)},
    **{f"utility/{name}": judged(9, 12, 0.3) for name in ROWS},
    "utility/ved": judged(4, 6, 0.6),
    "utility order": {
        "landmarks": {f"ved - {name}": around(-5, 1) for name in ("blur", "pixelate", "replace")},
        "gaze": {"ved - blur": around(-6, 1), "ved - pixelate": around(-0.5, 1), "ved - replace": around(-6, 1)},
        "expression": {f"ved - {name}": around(0.3, 0.1) for name in ("blur", "pixelate", "replace")},
    },
    "landmarks/original": {"truth": "dlib", "mean": around(4.0), "mean face": 9.0},
    "landmarks/ved": {"truth": "dlib", "mean": around(5.2), "mean face": 9.0, "ratio": around(1.3)},
    "landmarks/blur": {"truth": "dlib", "mean": around(5.0), "mean face": 9.0, "ratio": around(1.25)},
    "guarantee": {
        "paper": {"text": "no formal guarantee", "epsilon claimed": 17.0, "epsilon proved": None},
        "privunit": {"text": "sound", "epsilon claimed": 8.0, "epsilon proved": 8.0, "epsilon measured": 6.0,
                     "draws": 100},
    },
}  # fmt: skip


def test_figures_are_multiples_worst_bounds_ratios_and_shares() -> None:
    found = by_id(CELLS)
    figures = {name: (row["figure"], claims.reaches(row["figure"], row["bar"])) for name, row in found.items()}
    assert figures == {
        "tpr-0.01": (2.0, True),
        "tpr-0.001": (2.0, True),
        "farthest": (1.0, True),
        "inverted-transforms": (5.0, True),  # mlp - ved, of the two the less sure
        "inverted-noise": (-2.0, False),
        "inverted-noise-mlp": (1.0, True),
        "kept-landmarks": (4.0, True),
        "kept-gaze": (-0.5, False),  # pixelation is the least sure
        "kept-expression": (20.0, True),
        "taught-original": (1.3, True),
        "taught-blur": (1.04, False),
        "paper-guarantee": (1.0, True),
        "sound-guarantee": (0.75, True),
    }
    assert "face blur 40.00 [39.00, 41.00]" in found["tpr-0.01"]["note"]
    assert "claimed 8, proved 8, measured at least 6.00" in found["sound-guarantee"]["note"]
    assert "opp, mlp fitted to the swapper of ved" in STUDY.scale(CELLS, CONFIG)


def test_what_was_not_measured_or_is_invalid_is_not_claimed() -> None:
    assert rows({}) == withheld({}) == withheld(CELLS) == []
    broken = copy.deepcopy(CELLS)
    broken[f"inverted/mlp/{JUDGE}"]["invalid"] = ["its loss still fell"]
    assert set(by_id(CELLS)) - set(by_id(broken)) == {"inverted-transforms"}
    assert withheld(broken) == [f"inverted/mlp/{JUDGE} is INVALID: its loss still fell"]
    failing = copy.deepcopy(CELLS)
    for noise in ("ved@8", "mlp@8"):
        failing[f"inverted/{noise}/{JUDGE}"]["invalid"] = ["its loss still fell"]
    assert set(by_id(CELLS)) - set(by_id(failing)) == {"inverted-noise-mlp"}  # of ved it fails in any case
    assert withheld(failing) == [f"inverted/mlp@8/{JUDGE} is INVALID: its loss still fell"]
    greater = copy.deepcopy(CELLS)
    greater[f"inverted/opp/{JUDGE}"]["invalid"] = ["its loss still fell"]
    assert withheld(greater) == []
    assert by_id(greater)["inverted-transforms"]["note"].endswith("its loss still fell), so at least that much.")
    blind = copy.deepcopy(CELLS)
    blind["utility order"]["gaze"] = {}
    blind["landmarks/blur"] = {"why": "no judge"}
    assert set(by_id(CELLS)) - set(by_id(blind)) == {"kept-gaze", "taught-original", "taught-blur"}
    untaught = copy.deepcopy(CELLS)
    untaught["landmarks/original"]["mean face"] = 4.0
    assert set(by_id(CELLS)) - set(by_id(untaught)) == {"taught-original", "taught-blur"}
    assert "has learned nothing" in withheld(untaught)[0]
    promised = copy.deepcopy(CELLS)
    promised["guarantee"]["paper"]["text"] = "17-local differential privacy"
    assert by_id(promised)["paper-guarantee"]["figure"] == 0


def test_the_page_has_the_tables_whose_cells_are_there() -> None:
    assert "|" not in tables({})
    text = tables(CELLS)
    for part in ("| Disguise, ved | 2.00 [1.00, 3.00] |", "| opp - mlp | 20.00 [15.00, 25.00] |",
                 "| Disguise, ved | 4.00 [3.99, 4.01] | 100.0 |", "| ved - pixelate |", "1.30 [1.29, 1.31]",
                 "at least 6.00", "| infinite |"):  # fmt: skip
        assert part in text, part
