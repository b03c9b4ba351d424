"""The tables of PixelFade's study as Markdown, from its cells."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from studies.pixelfade.plan import (
    AVIH,
    AVIH_RELEASED,
    FLOOR,
    OURS,
    GridPoint,
    PixelFadeStudyConfig,
    grid_points,
    scale,
)
from studies.shared import tables as study_tables
from studies.shared.figures import Point, plot
from studies.shared.measures import SETTINGS
from studies.shared.study import Cells
from studies.shared.tables import (
    Row,
    attacks_table,
    differences,
    markdown,
    mean_image,
    pair,
    percent,
    remark,
    with_interval,
)

NAMES = {
    OURS: "PixelFade (ours)", "paper": "PixelFade, `paper`", "released": "PixelFade, `released`", "avih": "AVIH",
    "avih-released": "AVIH, `released`",
    "pixelate": "mosaic", "blur": "blur", "noise": "added noise", FLOOR: "noise alone (floor)",
}  # fmt: skip
AXES = {
    "noise weight": "Table 3: share of noise in what values are replaced by",
    "objective": "Table 4: what values are replaced by",
    "perturb": "Figure 4, left: amplitude of random perturbations instead of replacements",
    "l1": "Figure 4, right: weight of L1 optimisation instead of replacements",
    "steps": "Figure 5a: steps", "step": "Figure 5b: step size", "threshold": "Figure 5c: threshold",
    "masks": "Figure 5d: masks", "own threshold": "Ours: threshold, as a share of the spread",
}  # fmt: skip
DRAWN = tuple(axis for axis in AXES if axis != "objective")  # those whose values are numbers


def matching_table(releases: Mapping[str, Row], by: str) -> str:
    """Rank-1 and mAP of each release in four settings. by: "expert" or "judge"."""
    return study_tables.matching_table(releases, by, NAMES)


def kept_table(releases: Mapping[str, Row]) -> str:
    """The change of the expert's Rank-1, and what the ledger says."""
    rows = []
    for name, cell in releases.items():
        change, ledger = cell["expert"]["change"], cell["ledger"]
        rows.append(
            (
                NAMES[name],
                *(percent(change[setting]["rank-1"]) for setting in reversed(SETTINGS[1:])),
                percent(ledger["held"]),
                "" if ledger["feature distance"] is None else f"{ledger['feature distance']:.4g}",
                "" if ledger["limit"] is None else f"{ledger['limit']:.4g}",
                "" if ledger["steps"] is None else f"{ledger['steps']:.1f}",
            )
        )
    head = ("release", *(setting.replace("-", " to ") for setting in reversed(SETTINGS[1:])))
    return markdown((*head, "constraint held", "distance", "limit", "steps"), rows)


def recovered_table(releases: Mapping[str, Row], recovered: Mapping[str, Row]) -> str:
    """What the U-Net recovers of each release, beside the chaos of its pictures."""
    metrics = ("SSIM", "PSNR", "SSIM (batch scale)", "PSNR (batch scale)")
    rows = []
    for name, cell in recovered.items():
        scores = cell["scores"]
        rows.append(
            (
                NAMES[name],
                with_interval(releases[name]["pictures"]["AD"], 1),
                *(with_interval(scores.get(metric), 2 if "PSNR" in metric else 3) for metric in metrics),
                *(percent(scores.get(metric)) for metric in ("rank-1", "person rank-1")),
                remark(cell),
            )
        )
    return markdown(("release", "AD", *metrics, "very original", "person", "remark"), rows)


def outlines_table(outlines: Mapping[str, Row], releases: Mapping[str, Row]) -> str:
    """The silhouette leak of each release and of noise, beside what it keeps."""
    metrics = ("AUC beyond place", "AUC beyond place, energy", "AUC", "AUC, energy")
    rows = []
    for name, cell in outlines.items():
        kept = releases[name]["expert"]["settings"]["protected-protected"]["rank-1"] if name in releases else None
        values = [with_interval(cell["scores"].get(metric), 3) for metric in metrics]
        rows.append((NAMES[name], *values, percent(kept), remark(cell)))
    return markdown(("release", *metrics, "Rank-1, protected to protected", "remark"), rows)


def sizes_table(sizes: Mapping[str, Mapping[str, float]]) -> str:
    """SSIM of the controls' pictures to their originals, by size."""
    names = list(next(iter(sizes.values())))
    rows = [(size, *(f"{row[name]:.3f}" for name in names)) for size, row in sizes.items()]
    return markdown(("size", *(NAMES[name] for name in names)), rows)


def axis_tables(axis: str, points: Sequence[GridPoint], grid: Mapping[str, Row]) -> list[str]:
    """The title and the table of one axis of the grids; nothing where it has no points."""
    chosen = [(point.value, grid[point.cell]) for point in points if point.axis == axis]
    if not chosen:
        return []
    rows = []
    for value, cell in chosen:
        pictures, settings, held = cell["pictures"], cell["expert"]["settings"], cell["ledger"]["held"]
        rows.append(
            (
                value,
                *(
                    with_interval(pictures[metric], digits)
                    for metric, digits in (("AD", 1), ("SSIM", 3), ("PSNR", 2))
                ),
                *(pair(settings[setting]) for setting in ("protected-protected", "raw-protected")),
                percent(held),
            )
        )
    head = (axis, "AD", "SSIM", "PSNR", "protected to protected: Rank-1 / mAP", "raw to protected: Rank-1 / mAP")
    return [f"**{AXES[axis]}**", markdown((*head, "constraint held"), rows)]


def backbones_table(backbones: Mapping[str, Row]) -> str:
    """Four settings under other experts."""
    head = ("expert", *(f"{setting.replace('-', ' to ')}: Rank-1 / mAP" for setting in reversed(SETTINGS)))
    rows = [
        (name, *(pair(cell["expert"]["settings"][setting]) for setting in reversed(SETTINGS)),
         percent(cell["ledger"]["held"]))
        for name, cell in backbones.items()
    ]  # fmt: skip
    return markdown((*head, "constraint held"), rows)


def figure_file(axis: str) -> str:
    """The name of an axis's figure."""
    return f"grid-{axis.replace(' ', '-')}.svg"


def page_tables(cells: Mapping[str, Any], config: PixelFadeStudyConfig) -> str:
    """What stands on PixelFade's page, as far as it is computed."""
    releases, recovered, outlines, attacks = (
        cells_of(cells, kind, config) for kind in ("release", "recovery", "outline", "attack")
    )
    sections = [
        f"CUHK03-NP (detected, 128x64): {scale(config)}; seed {config.seed}, on a CPU. "
        "PNG files read back; rates in %, with 95 % intervals over people."
    ]
    if releases:
        sections += ["Recognised by the authorised expert:", matching_table(releases, "expert")]
        sections += ["Change of Rank-1 in points, and what the private ledger says:", kept_table(releases)]
        sections += ["Recognised by a stranger's OSNet, trained on MSMT17:", matching_table(releases, "judge")]
    if recovered := {name: cell for name, cell in recovered.items() if name in releases}:
        sections += [
            f"Recovered by a U-Net; the mean image of the training people scores {mean_image(recovered)}:",
            recovered_table(releases, recovered),
        ]
    if order := cells.get("order"):
        sections.append(differences(order, "recovery SSIM"))
    if sizes := cells.get("sizes"):
        sections += ["Mosaic and blur as they stand, nothing recovered: SSIM to originals of their size, and "
                     "enlarged:",
                  sizes_table(sizes)]  # fmt: skip
    if attacks:
        sections += ["Stronger attackers on ours:", attacks_table(attacks)]
    if outlines:
        sections += ["Where the person stands:", outlines_table(outlines, releases)]
    if apart := cells.get("outlines"):
        sections.append(differences(apart, "AUC beyond place"))
    if energies := cells.get("energies"):
        sections.append(differences(energies, "AUC by local energy"))
    grid = cells_of(cells, "grid", config)
    points = [point for point in grid_points(config) if point.cell in grid]
    if points:
        sections.append(
            f"One setting of `{config.grid_preset}` changed, on {config.grid_people} people; SSIM and PSNR of the "
            "protected picture to its original:"
        )
        sections += [table for axis in AXES for table in axis_tables(axis, points, grid)]
    if backbones := cells_of(cells, "backbone", config):
        sections += ["Ours for other experts, by which it is also judged:", backbones_table(backbones)]
    return "\n\n".join(sections)


def beside_avih(cells: Mapping[str, Any], config: PixelFadeStudyConfig) -> str:
    """What stands on AVIH's page: itself beside PixelFade."""
    releases, recovered = (
        {name: cell for name, cell in cells_of(cells, kind, config).items() if name in (OURS, AVIH, AVIH_RELEASED)}
        for kind in ("release", "recovery")
    )
    if AVIH not in releases:
        return "Nothing yet on pictures of real people."
    sections = [f"{scale(config)}; seed {config.seed}."]
    sections += [matching_table(releases, "expert"), kept_table(releases), matching_table(releases, "judge")]
    if recovered := {name: cell for name, cell in recovered.items() if name in releases}:
        sections.append(recovered_table(releases, recovered))
    return "\n\n".join(sections)


def cells_of(cells: Mapping[str, Any], kind: str, config: PixelFadeStudyConfig) -> dict[str, Any]:
    """The cells of one kind by their own names, in the study's order where it has one."""
    found = {name.removeprefix(f"{kind}/"): cell for name, cell in cells.items() if name.startswith(f"{kind}/")}
    placed = {name: place for place, name in enumerate((*config.releases, FLOOR))}
    return dict(sorted(found.items(), key=lambda item: placed.get(item[0], len(placed))))


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
