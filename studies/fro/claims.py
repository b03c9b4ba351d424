"""The rows of claims of FRO's study."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from studies.fro.plan import CLUSTERED, FroStudyConfig
from studies.fro.tables import interval_of, release_name

KEPT = {"mAP": 65, "rank-1": 75}  # of the pool's, in %


def rows(cells: Mapping[str, Any], config: FroStudyConfig) -> list[dict[str, Any]]:
    """The rows of claims that these cells allow."""
    found: list[dict[str, Any]] = []
    pool, student = cells.get("pool"), cells.get("student/fro-1")
    if pool and student:
        beside = _beside(cells)
        for metric, bar in KEPT.items():
            kept = 100 * student[metric][0] / pool[metric][0]
            why = ""
            if kept < bar and (replayed := cells.get("student/originals")):
                whole = 100 * replayed[metric][0] / pool[metric][0]
                why = f"; short for its pictures, not for the replay: of the originals a student keeps {whole:.0f} %"
            found.append(
                {
                    "id": f"fro-kept-{metric.replace('-', '').lower()}",
                    "claim": f"Of the pool's {_name(metric)}, what FRO's student keeps at scale 1",
                    "figure": round(kept, 1),
                    "bar": f">= {bar}",
                    "unit": "%",
                    "note": f"{_name(metric)}: pool {interval_of(pool, metric)}, "
                    f"student {interval_of(student, metric)}"
                    + "".join(f", {name} {interval_of(cell, metric)}" for name, cell in beside.items())
                    + why,
                }
            )
    students = {scale: cells.get(f"student/fro-{scale:g}") for scale in sorted(config.scales)}
    if all(students.values()):
        values = {scale: 100 * cell["mAP"][0] for scale, cell in students.items() if cell}
        steps = [later - earlier for earlier, later in zip(values.values(), list(values.values())[1:], strict=False)]
        found.append(
            {
                "id": "fro-scale", "claim": "Least rise of the student's mAP from one data scale to the next",
                "figure": round(min(steps), 1), "bar": "> 0", "unit": "points",
                "note": ", ".join(f"scale {scale:g}: {value:.1f} %" for scale, value in values.items()),
            }
        )  # fmt: skip
    if similar := cells.get("ssim/fro-1"):
        found.append(
            {
                "id": "fro-ssim", "claim": "Mean SSIM of an original and a synthetic picture of the same class",
                "figure": round(similar["ssim"], 3), "bar": "<= 0.15", "unit": "SSIM",
                "note": f"{similar['pairs']} pairs",
            }
        )  # fmt: skip
    if (attacks := cells.get("attacks/fro-1")) and (shadows := cells.get("attacks/shadows")):
        attacks = {**attacks, **shadows}
        short = [
            name for name, attack in attacks.items()
            if not attack["applicable"] or attack["invalid"] or attack["scores"][0]["low"] is None
        ]  # fmt: skip
        found.append(
            {
                "id": "fro-attacks", "claim": "Attacks on FRO's release without a valid figure and its interval",
                "figure": len(short), "bar": "== 0", "unit": f"of {len(attacks)} attacks",
                "note": "; ".join(_headline(name, attack) for name, attack in attacks.items()),
            }
        )  # fmt: skip
    clusters = {names: cells.get(f"clusters/{'/'.join(names)}") for names in CLUSTERED}
    if any(clusters.values()):
        measured = {names: cell for names, cell in clusters.items() if cell}
        found.append(
            {
                "id": "fro-clusters", "claim": "Clusters by person of which Silhouette and ARI are missing",
                "figure": len(clusters) - len(measured), "bar": "== 0", "unit": f"of {len(clusters)}",
                "note": "Silhouette / ARI: " + "; ".join(
                    f"{release_name(model)} on {release_name(seen)} {cell['silhouette']:.2f} / {cell['ari']:.2f}"
                    for (model, seen), cell in measured.items()
                ),
            }
        )  # fmt: skip
    return found


def _headline(name: str, attack: Mapping[str, Any]) -> str:
    if not attack["applicable"]:
        return f"{name}: {attack['reason']}"
    score = attack["scores"][0]
    chance = attack["chance"].get(score["metric"])
    text = f"{name} {score['metric']} {score['value']:.3f}"
    text += "" if score["low"] is None else f" [{score['low']:.3f}, {score['high']:.3f}]"
    text += "" if chance is None else f", chance {chance:.3f}"
    return text + "".join(f", INVALID: {why}" for why in attack["invalid"])


def _beside(cells: Mapping[str, Any]) -> dict[str, Any]:
    named = {
        "originals": "student of the originals", "patches": "of PRO", "mixup": "of mix-up", "noise": "of noise",
    }  # fmt: skip
    return {text: cells[f"student/{name}"] for name, text in named.items() if f"student/{name}" in cells}


def _name(metric: str) -> str:
    return {"rank-1": "Rank-1"}.get(metric, metric)
