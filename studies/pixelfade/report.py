"""What PixelFade's study found: every cell in order, the tables as Markdown, the figures as SVG."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path

from studies.pixelfade.plan import FLOOR, OURS, GridPoint, expert_name, grid_points, grid_variants
from studies.pixelfade.study import PixelFadeStudy
from studies.pixelfade.tables import (
    AXES,
    DRAWN,
    NAMES,
    axis_tables,
    backbones_table,
    figure_file,
    kept_table,
    matching_table,
    outlines_table,
    recovered_table,
    sizes_table,
)
from studies.shared.figures import Point, plot, sheet
from studies.shared.tables import Row, attacks_table, differences, mean_image
from veilkit.media.writing import write_atomically

_COLUMNS = 10  # pictures on a sheet


def run_study(study: PixelFadeStudy) -> Path:
    """Compute every cell and write report.md with its figures; returns the report's file."""
    config = study.config
    spread = study.spread()["spread"]
    releases = {name: study.release(name) for name in config.releases}
    recovered = {name: study.recovery(name) for name in config.releases}
    order, sizes = study.order(), study.sizes()
    outlines = {name: study.outline(name) for name in (*config.outlined, FLOOR)}
    apart, energies = study.outlines(), study.energies()
    attacks = {name: study.attack(name) for name in config.attacks}
    grid = {name: study.grid(name) for name in grid_variants(config)}
    backbones = {expert_name(expert): study.backbone(expert) for expert in config.experts}
    for name in config.releases:
        file = study.folder / "sheets" / f"{name}.png"
        if recovered[name]["applicable"] and not file.exists():
            sheet(file, study.shown(name, _COLUMNS).rows())
    points = grid_points(config)
    _draw(study.folder, releases, recovered, points, grid)
    first = releases[OURS]
    settings = {**asdict(config), "experts": [expert_name(expert) for expert in config.experts]}
    parts = [
        "# PixelFade in small",
        f"{config.people} test people, {config.queries} query and {config.gallery} gallery pictures of each at most; "
        f"attackers learn from {config.public_people} training people, {config.public_pictures} pictures of each, "
        f"in {config.updates} updates of {config.batch} pictures. {config.steps} steps, seed {config.seed}. The "
        f"expert's spread on the training people is {spread:.4g}. All figures are of PNG files read back; rates in "
        "%, with 95 % intervals over people. `cells/` holds each figure, `sheets/` original, protected and recovered "
        "pictures.",
        f"## Table 1: recognised by the authorised expert, {first['expert']['recogniser']}",
        matching_table(releases, "expert"),
        "Change of Rank-1 against unprotected pictures, in points; and what the ledger says of "
        f"{first['ledger']['pictures']} test pictures: whether the 8-bit file kept the feature constraint, the "
        "squared feature distance, its limit, and steps.",
        kept_table(releases),
        f"## Table 1 for strangers: recognised by the independent judge, {first['judge']['recogniser']}",
        matching_table(releases, "judge"),
        "## Table 2 and [Figure 1a](figure-1a.svg): recovery by a U-Net",
        "SSIM and PSNR on the fixed [0, 1] scale, then on the paper's (each batch stretched to its own range, for "
        "comparison only); whether the judge finds the very original, and the person, from the recovered picture. "
        f"The mean image of the training people scores {mean_image(recovered)}.",
        recovered_table(releases, recovered),
        "Paired differences of recovery SSIM, in the paper's order:",
        differences(order, "SSIM"),
        "Controls as they stand, nothing recovered: SSIM to the originals at the pictures' own size, and enlarged to "
        "the paper's, by which its figures are higher.",
        sizes_table(sizes),
        "## Stronger attackers on ours",
        attacks_table(attacks),
        "## The outline: where does the person stand?",
        "Area under the curve of person against background; beyond place, so that noise scores 0.5.",
        outlines_table(outlines, releases),
        differences(apart, "AUC beyond place"),
        differences(energies, "AUC by local energy"),
        f"## Tables 3 and 4, Figures 4 and 5: one setting of `{config.grid_preset}` changed, on "
        f"{config.grid_people} people",
        "SSIM and PSNR are those of the protected picture to its original; the paper's are of recovered ones, for "
        "which it trained a network each.",
        *(part for axis in AXES for part in axis_tables(axis, points, grid)),
        "## Table 7: other backbones, protected by ours",
        backbones_table(backbones) if backbones else "None were given (`--set experts=NAME_OR_FILE,...`).",
        "## Settings",
        "```json\n" + json.dumps(settings, indent=2) + "\n```",
    ]  # fmt: skip
    file = study.folder / "report.md"
    write_atomically(file, ("\n\n".join(parts) + "\n").encode(), study.folder)
    return file


def _draw(
    folder: Path,
    releases: Mapping[str, Row],
    recovered: Mapping[str, Row],
    points: Sequence[GridPoint],
    grid: Mapping[str, Row],
) -> None:
    dots: list[Point] = []
    for name, cell in recovered.items():
        chaos, found = releases[name]["pictures"]["AD"], cell["scores"].get("SSIM")
        if chaos is not None and found is not None and chaos[0] > 0:
            dots.append((chaos[0], found[0], NAMES[name].replace("`", "")))
    plot(
        folder / "figure-1a.svg", "Chaos and recovery (paper: Figure 1a)", {"releases": dots},
        across="AD of the protected picture (logarithmic)", up="SSIM of the recovered picture", joined=False,
        logarithmic=True,
    )  # fmt: skip
    for axis in DRAWN:
        chosen = [(float(point.value), grid[point.cell]) for point in points if point.axis == axis]
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
