"""The figures of Disguise's study as SVG, from its cells."""

from __future__ import annotations

from pathlib import Path

from studies.disguise.plan import CONTROLS, ORIGINAL
from studies.disguise.tables import name_of
from studies.disguise.verification import EDGES
from studies.shared.figures import plot
from studies.shared.study import Cells

_ROC_TICKS = (1e-4, 1e-3, 1e-2, 1e-1)
_DISTANCE_TICKS = (0.0, 0.5, 1.0, 1.5, 2.0)


def draw_recognition(folder: Path, judge: str, found: Cells) -> None:
    """ROC and distances by a judge (the paper's Figure 7). found: the cells of recognition, by release."""
    curves = {name_of(name): [(rate, value, "") for rate, value in cell["ROC"]] for name, cell in found.items()}
    plot(
        folder / f"roc-{judge}.svg", f"ROC by {judge} (paper: Figure 7)", curves, across="FPR", up="TPR",
        logarithmic=True, ticks=_ROC_TICKS, dots=False,
    )  # fmt: skip
    middles = ((EDGES[:-1] + EDGES[1:]) / 2).tolist()
    shares = dict(list(found[ORIGINAL]["distances"].items())[:2])
    for name in (*CONTROLS[:1], "opp", "mlp", "ved"):
        shares[f"original and {name_of(name)}"] = found[name]["distances"]["original and protected"]
    series = {name: [(x, y, "") for x, y in zip(middles, each, strict=True)] for name, each in shares.items()}
    plot(
        folder / f"distances-{judge}.svg", f"Distances by {judge} (paper: Figure 7)", series,
        across="Euclidean distance of unit vectors", up="share of pairs", ticks=_DISTANCE_TICKS, dots=False,
    )  # fmt: skip
