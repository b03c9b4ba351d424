"""The tables of FRO's study as Markdown, from its cells."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from studies.fro.plan import CLUSTERED, FroStudyConfig

METRICS = ("mAP", "rank-1")
RIVAL_NAMES = {"patches": "PRO", "mixup": "mix-up", "noise": "noise"}


def page_tables(cells: Mapping[str, Any], config: FroStudyConfig) -> str:
    """What stands on the method's page: students, likeness, attacks and clusters, as far as they are computed."""
    pool = cells["pool"]
    named = {"student/originals": "student of the originals"}
    named |= {f"student/fro-{scale:g}": f"student of FRO, scale {scale:g}" for scale in config.scales}
    named["student/fro-paper"] = f"student of FRO as printed, scale {config.paper_scale:g}"
    named |= {f"student/{name}": f"student of {text}" for name, text in RIVAL_NAMES.items()}
    lines = [
        f"CUHK03-NP (detected, 128x64): {config.people} training people, official query and gallery, "
        f"{config.backbone}, preset `{config.preset}`, {config.steps} steps, replay temperature {config.replay:g}, "
        f"seed {config.seed}, on a CPU. Intervals of 95 % over people.",
        "",
        "| model | pictures | mAP, % | Rank-1, % | mAP kept, % | Rank-1 kept, % |",
        "|---|---|---|---|---|---|",
    ]
    trained = " | ".join(interval_of(pool, metric) for metric in METRICS)
    lines.append(f"| pool (trained on the originals) | | {trained} | | |".replace(" %", ""))
    for cell, text in named.items():
        if held := cells.get(cell):
            kept = " | ".join(f"{100 * held[metric][0] / pool[metric][0]:.0f}" for metric in METRICS)
            shown = " | ".join(interval_of(held, metric) for metric in METRICS)
            lines.append(f"| {text} | {held['pictures']:,} | {shown} | {kept} |".replace(" %", ""))
    likeness = {name: cells[f"ssim/{name}"]["ssim"] for name in ("fro-1", *RIVAL_NAMES) if f"ssim/{name}" in cells}
    if likeness:
        values = ", ".join(f"{release_name(name)} {value:.3f}" for name, value in likeness.items())
        lines += ["", f"Mean SSIM of an original and a released picture of the same class: {values}."]
    shadows = config.shadows
    tiny = (
        f"{shadows.count} shadows of a study of its own ({shadows.people} people, {shadows.pictures} pictures each, "
        f"{shadows.size[0]}x{shadows.size[1]})"
    )
    for cell, text in {"attacks/fro-1": "attack on FRO, scale 1", "attacks/shadows": f"attack by {tiny}"}.items():
        if attacks := cells.get(cell):
            lines += ["", f"| {text} | found | chance |", "|---|---|---|"]
            lines += [line for name, attack in attacks.items() for line in _attacked(name, attack)]
    clusters = {names: cells.get(f"clusters/{'/'.join(names)}") for names in CLUSTERED}
    if any(clusters.values()):
        lines += ["", "| features of | on | Silhouette | ARI |", "|---|---|---|---|"]
        lines += [
            f"| {release_name(model)} | {release_name(seen)} | {cell['silhouette']:.3f} | {cell['ari']:.3f} |"
            for (model, seen), cell in clusters.items() if cell
        ]  # fmt: skip
    ratios = {ratio: cells.get(f"mixup/mixup-{ratio:g}") for ratio in config.ratios}
    if all(ratios.values()):
        lines += ["", "| pool on mix-up, ratio | Silhouette | ARI |", "|---|---|---|"]
        lines += [f"| {r:g} | {cell['silhouette']:.3f} | {cell['ari']:.3f} |" for r, cell in ratios.items() if cell]
    grid = {(t, e): cells.get(f"grid/grid-T{t:g}-e{e:g}") for t in config.temperatures for e in config.softenings}
    if all(grid.values()):
        lines += [
            "",
            f"Students of {config.grid_people} people at scale {config.grid_scale:g}, mAP / Rank-1 in %:",
            "",
        ]
        lines.append("| T | " + " | ".join(f"epsilon {e:g}" for e in config.softenings) + " |")
        lines.append("|---" * (1 + len(config.softenings)) + "|")
        for t in config.temperatures:
            row = [grid[t, e] for e in config.softenings]
            both = [" / ".join(f"{100 * cell[m][0]:.1f}" for m in METRICS) for cell in row if cell]
            lines.append(f"| {t:g} | " + " | ".join(both) + " |")
    return "\n".join(lines)


def _attacked(name: str, attack: Mapping[str, Any]) -> list[str]:
    if not attack["applicable"]:
        return [f"| `{name}` | not measured: {attack['reason']} | |"]
    found = []
    for score in attack["scores"]:
        interval = "" if score["low"] is None else f" [{score['low']:.3f}, {score['high']:.3f}]"
        chance = attack["chance"].get(score["metric"])
        invalid = "".join(f", INVALID: {why}" for why in attack["invalid"])
        by_chance = "" if chance is None else f"{chance:.3f}"
        found.append(f"| `{name}`: {score['metric']} | {score['value']:.3f}{interval}{invalid} | {by_chance} |")
    return found


def release_name(name: str) -> str:
    """A release, or a part of the data, in words."""
    known = {**RIVAL_NAMES, "train": "training people", "val": "test people"}
    return f"FRO at scale {name.removeprefix('fro-')}" if name.startswith("fro-") else known.get(name, name)


def interval_of(cell: Mapping[str, Any], metric: str) -> str:
    """A metric in %, with its interval."""
    value, low, high = (100 * each for each in cell[metric])
    return f"{value:.1f} % [{low:.1f}, {high:.1f}]"
