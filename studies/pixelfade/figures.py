"""The figures of PixelFade's study as SVG, from its cells."""

from __future__ import annotations

from pathlib import Path

from studies.pixelfade.plan import PixelFadeStudyConfig, grid_points
from studies.pixelfade.tables import AXES, DRAWN, NAMES, figure_file
from studies.shared.figures import Point, plot
from studies.shared.study import Cells


def draw_figures(folder: Path, config: PixelFadeStudyConfig, cells: Cells) -> None:
    """Figure 1a, and a figure for each axis of the grids whose values are numbers."""
    dots: list[Point] = []
    for name in config.releases:
        recovered, release = cells[f"recovery/{name}"], cells[f"release/{name}"]
        chaos, found = release["pictures"]["AD"], recovered["scores"].get("SSIM")
        if chaos is not None and found is not None and chaos[0] > 0:
            dots.append((chaos[0], found[0], NAMES[name].replace("`", "")))
    plot(
        folder / "figure-1a.svg", "Chaos and recovery (paper: Figure 1a)", {"releases": dots},
        across="AD of the protected picture (logarithmic)", up="SSIM of the recovered picture", joined=False,
        logarithmic=True,
    )  # fmt: skip
    points = grid_points(config)
    for axis in DRAWN:
        chosen = [(float(point.value), cells[f"grid/{point.cell}"]) for point in points if point.axis == axis]
        series: dict[str, list[Point]] = {"Rank-1, protected to protected": [], "SSIM to the original": []}
        for value, cell in chosen:
            rank = cell["expert"]["settings"]["protected-protected"]["rank-1"][0]
            series["Rank-1, protected to protected"].append((value, rank, ""))
            if cell["pictures"]["SSIM"] is not None:
                series["SSIM to the original"].append((value, cell["pictures"]["SSIM"][0], ""))
        if chosen:
            plot(
                folder / figure_file(axis), AXES[axis], series, across=axis, up="Rank-1 (share), SSIM",
                logarithmic=min(value for value, _ in chosen) > 0,
            )  # fmt: skip
