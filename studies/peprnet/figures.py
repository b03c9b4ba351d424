"""The figures of PEPR-Net's study as SVG, from its cells."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from studies.peprnet.plan import CURVE, PAPERS_NOISE, PLANE, TRADE, PeprStudyConfig
from studies.peprnet.tables import NAMES, curve_cells, noise_cells
from studies.privacyreid.feature_distribution import draw_distributions
from studies.shared.figures import Point, plot
from studies.shared.study import Cells
from studies.shared.tables import Row, named_cells
from veilkit.attacks.identify import ACCURACY, CENTROID, NEIGHBOUR, SOFTMAX
from veilkit.methods.peprnet.feature_noise import NoiseKind


def draw_figures(folder: Path, config: PeprStudyConfig, cells: Cells) -> None:
    """Rank-1 against epsilon, identification against mAP, and features in the plane."""
    encoders = {**named_cells(cells, "model", config.models), **named_cells(cells, "rival", config.rivals)}
    draw_curve(folder / CURVE, curve_cells(cells, config))
    draw_trade(folder / TRADE, encoders, noise_cells(cells, config))
    planes = named_cells(cells, "plane", config.plotted)
    panels = {f"({letter}) {_plain(name)}": cell for letter, (name, cell) in zip("abc", planes.items(), strict=False)}
    draw_distributions(
        folder / PLANE, "Features of some test people (paper: Figure 6)", panels,
        ("feature", f"with PrivUnit's noise, epsilon {max(config.epsilons):g}"),
    )  # fmt: skip


def draw_curve(file: Path, curves: Mapping[tuple[int, NoiseKind], Row]) -> None:
    """Rank-1 of the person against epsilon, a line for each length and kind of noise."""
    series: dict[str, list[Point]] = {}
    for (dimension, kind), cell in curves.items():
        name = f"{kind}, {dimension} features" + (" (no guarantee)" if kind == PAPERS_NOISE else "")
        points = {key: point for key, point in cell.items() if key not in ("clean", "people") and point is not None}
        last = max(points, key=float, default="")  # where a line ends stands the length of its features
        series[name] = [
            (float(key), point["person"], f"{dimension}" if key == last else "") for key, point in points.items()
        ]
    plot(
        file, "Rank-1 in a gallery with noise", {name: points for name, points in series.items() if points},
        across="epsilon (logarithmic)", up="Rank-1 (share)", logarithmic=True,
    )  # fmt: skip


def draw_trade(file: Path, models: Mapping[str, Row], noisy: Mapping[tuple[str, NoiseKind, float], Row]) -> None:
    """Identification by the strongest classifier against mAP (the paper's Figure 5): right and low is good."""
    series: dict[str, list[Point]] = {"without noise": [], "with noise": []}
    for name, cell in models.items():
        series["without noise"].append((cell["utility"]["mAP"][0], _strongest(cell), _plain(name)))
    for cell in noisy.values():
        series["with noise"].append((cell["utility"]["mAP"][0], _strongest(cell), ""))
    plot(
        file, "Privacy and utility (paper: Figure 5)", series, across="mAP", up="identified (share), best classifier",
        joined=False,
    )  # fmt: skip


def _strongest(cell: Row) -> float:
    scores = cell["identification"]["scores"]
    found = [scores[f"{ACCURACY} ({name})"][0] for name in (SOFTMAX, NEIGHBOUR, CENTROID)
             if f"{ACCURACY} ({name})" in scores]  # fmt: skip
    return max(found, default=0.0)


def _plain(name: str) -> str:
    return NAMES[name].replace("*", "").replace("`", "")
