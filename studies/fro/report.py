"""What FRO's study found: every cell in order, the tables as Markdown, the figures as SVG."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict
from html import escape
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.manifold import TSNE

from studies.fro.study import CLUSTERED, RIVALS, FroStudy
from veilkit.media.writing import write_atomically

_NAMES = {
    "patches": "patch recombination (PRO)",
    "mixup": "mix-up, r = 0.5",
    "noise": "noise",
    "pool": "pool",
    "train": "training people",
    "val": "test people",
}


def run_study(study: FroStudy) -> Path:
    """Compute every cell and write report.md with its figures; returns the report's file."""
    config = study.config
    pool = study.pool()
    students = {scale: study.student(scale) for scale in config.scales}
    replayed = study.student_of_originals()
    rivals = {name: study.rival(name) for name in RIVALS}
    similar = {name: study.similarity(name) for name in ("fro-1", *RIVALS)}
    attacks, shadows = study.attacks(), study.shadow_attacks()
    clusters = {(model, seen): study.clusters(model, seen) for model, seen in CLUSTERED}
    ratios = {ratio: study.mixup_clusters(ratio) for ratio in config.ratios}
    printed = (f"student of FRO as printed, scale {config.paper_scale:g}", study.student_of_paper())
    grid = {(t, e): study.grid(t, e) for t in config.temperatures for e in config.softenings}
    for model, seen in CLUSTERED:
        _draw_tsne(study, model, seen)
    parts = [
        "# FRO in small",
        f"{config.people} training people, {config.backbone} at {config.size[0]}x{config.size[1]}, {config.epochs} "
        f"epochs, {config.steps} steps of synthesis, seed {config.seed}. Rank-1 and mAP in %, on the official query "
        "and gallery, with 95 % intervals over people. `cells/` holds each figure.",
        "## Comparison",
        _comparison(pool, replayed, students, rivals, printed),
        "## Similarity to originals of the same class",
        _table(
            ("release", "mean SSIM", "pairs"),
            [(_name(name), f"{cell['ssim']:.3f}", str(cell["pairs"])) for name, cell in similar.items()],
        ),
        f"## Attacks on FRO at scale 1, its soft labels and its student, by {study.judge.name}",
        _attacks(attacks),
        f"By {config.shadows.count} shadow models, each {config.shadows.backbone} at {config.shadows.size[0]}x"
        f"{config.shadows.size[1]} on {config.shadows.people} people of {config.shadows.pictures} pictures:",
        _attacks(shadows),
        "## Clusters by person (paper: Figures 3 and 5)",
        _table(
            ("features of", "pictures", "Silhouette", "ARI", "t-SNE"),
            [
                (_name(model), _name(seen), *_clustered(cell), f"[figure]({_tsne(model, seen)})")
                for (model, seen), cell in clusters.items()
            ],
        ),
        "## Mix-up ratios, clusters of the pool's features (paper: Figure 7)",
        _table(
            ("r", "Silhouette", "ARI"),
            [(f"{ratio:g}", *_clustered(cell)) for ratio, cell in ratios.items()],
        ),
        f"## Temperature and softening at scale {config.grid_scale:g} (paper: Figure 8), mAP / Rank-1",
        _table(
            ("T", *(f"epsilon {e:g}" for e in config.softenings)),
            [
                (f"{t:g}", *(f"{100 * grid[t, e]['mAP'][0]:.1f} / {100 * grid[t, e]['rank-1'][0]:.1f}"
                             for e in config.softenings))
                for t in config.temperatures
            ],
        ),
        "## Settings",
        "```json\n" + json.dumps(asdict(config), indent=2) + "\n```",
    ]  # fmt: skip
    file = study.folder / "report.md"
    write_atomically(file, ("\n\n".join(parts) + "\n").encode(), study.folder)
    return file


def _comparison(
    pool: dict[str, Any],
    replayed: dict[str, Any],
    students: dict[float, dict[str, Any]],
    rivals: dict[str, Any],
    printed: tuple[str, dict[str, Any]],
) -> str:
    rows: list[Sequence[str]] = []
    rows.append(("pool (trained on the originals)", "", _interval(pool, "mAP"), _interval(pool, "rank-1"), "", ""))
    named = [("student of the originals", replayed)]
    named += [(f"student of FRO, scale {scale:g}", cell) for scale, cell in students.items()]
    named += [printed, *((f"student of {_name(name)}", cell) for name, cell in rivals.items())]
    for name, cell in named:
        kept = [f"{cell[metric][0] / max(pool[metric][0], 1e-9):.0%}" for metric in ("mAP", "rank-1")]
        rows.append((name, str(cell["pictures"]), _interval(cell, "mAP"), _interval(cell, "rank-1"), *kept))
    return _table(("model", "pictures", "mAP", "Rank-1", "mAP kept", "Rank-1 kept"), rows)


def _attacks(attacks: dict[str, Any]) -> str:
    rows: list[Sequence[str]] = []
    for name, found in attacks.items():
        if not found["applicable"]:
            rows.append((f"`{name}`", "not measured", "", found["reason"]))
        for place, score in enumerate(found["scores"]):
            interval = "" if score["low"] is None else f" [{score['low']:.3f}, {score['high']:.3f}]"
            chance = found["chance"].get(score["metric"])
            remark = "; ".join(["INVALID: " + why for why in found["invalid"]]) if place == 0 else ""
            rows.append(
                (
                    f"`{name}` {score['metric']}",
                    f"{score['value']:.3f}{interval}",
                    "" if chance is None else f"{chance:.3f}",
                    remark or score["note"],
                )
            )
    return _table(("attack", "found", "chance", "remark"), rows)


def _clustered(cell: dict[str, Any]) -> tuple[str, str]:
    return f"{cell['silhouette']:.3f}", f"{cell['ari']:.3f}"


def _interval(cell: dict[str, Any], metric: str) -> str:
    value, low, high = cell[metric]
    return f"{100 * value:.1f} [{100 * low:.1f}, {100 * high:.1f}]"


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = ["| " + " | ".join(row) + " |" for row in (head, ["---"] * len(head), *rows)]
    return "\n".join(lines)


def _name(name: str) -> str:
    return f"FRO, scale {name.removeprefix('fro-')}" if name.startswith("fro-") else _NAMES[name]


def _tsne(model: str, seen: str) -> str:
    return f"tsne-{model}-{seen}.svg"


def _draw_tsne(study: FroStudy, model: str, seen: str) -> None:
    """Features in the plane, one colour for each person; kept once drawn."""
    file = study.folder / _tsne(model, seen)
    if file.exists():
        return
    features, people = study.features(model, seen)
    unit = features / np.maximum(np.linalg.norm(features, axis=1, keepdims=True), 1e-12)
    near = min(30.0, (len(unit) - 1) / 3)
    places = TSNE(perplexity=near, init="pca", random_state=study.config.seed).fit_transform(unit)
    places = (places - places.min(0)) / np.maximum(np.ptp(places, axis=0), 1e-9)
    count = len(np.unique(people))
    dots = "".join(
        f'<circle cx="{10 + 380 * x:.1f}" cy="{10 + 380 * y:.1f}" r="2.6" fill="hsl({hue:.0f} 65% 45%)"/>'
        for (x, y), hue in zip(places.tolist(), (360 * people / count).tolist(), strict=True)
    )
    title = escape(f"t-SNE of {_name(model)}'s features of {_name(seen)}, {count} people")
    svg = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 400 400" role="img"><title>{title}</title>'
        f'<rect width="400" height="400" fill="#fff"/>{dots}</svg>\n'
    )
    write_atomically(file, svg.encode(), study.folder)
