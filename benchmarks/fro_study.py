"""FRO on CUHK03-NP: what `veilkit reproduce fro` computes, and the claims that follow from its cells.

    VEILKIT_DATA=... python benchmarks/fro_study.py

takes hours on two cores; stopped, it goes on with the same command. Pool and students start from
runs/imagenet-mobilenetv2.safetensors, which models/convert_imagenet.py makes as models/cuhk03_mobilenetv2.md says.
With --so-far nothing is computed: rows are recorded of the cells that are there.

    VEILKIT_DATA=... python benchmarks/fro_study.py --choose preset=spectral replay=4 ... --work DIR

is for choosing settings: it trains as above but scores pool and student at scale 0.5 or 1 on training people whom
neither knows, and records nothing. The test people are not looked at. Its cells lie in DIR/choice, since they must
never be taken for the study's own.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

import torch

from claims import ROOT, publish, put, record
from controls_table import independent_judge, sources
from imagenet import WEIGHTS, check_weights
from studies.fro.report import run_study
from studies.fro.study import CLUSTERED, FroStudy, FroStudyConfig
from studies.shared.cells import Cells
from veilkit.configs import with_settings
from veilkit.datasets.market1501 import Market1501, load_market1501
from veilkit.progress import Progress
from veilkit.rng import Randomness
from veilkit.training.holdout import hold_out
from veilkit.types import Split

CONFIG = FroStudyConfig()
COMMAND = "VEILKIT_DATA=... python benchmarks/fro_study.py"
KEPT = {"mAP": 65, "rank-1": 75}
RIVAL_NAMES = {"patches": "PRO", "mixup": "mix-up", "noise": "noise"}
PAGE = ROOT / "docs" / "methods" / "fro.md"
CHOSEN_BY = 200  # training people on whom settings are scored


def main() -> None:
    arguments = _arguments()
    if arguments.choose is not None:
        _choose(arguments)
        return
    if not arguments.so_far:
        _compute(arguments)
    cells = {}
    for file in sorted((arguments.work / "cells").glob("*.json")):
        held = json.loads(file.read_text(encoding="utf-8"))
        if held["settings"] != json.loads(json.dumps(asdict(CONFIG))):
            sys.exit(f"{file} was computed under other settings; name another folder with --work")
        cells[held["cell"]] = held["result"]
    put(PAGE, "fro", tables(cells))
    for row in rows(cells):
        record(
            **row, data="CUHK03-NP, detected, 128x64", seed=CONFIG.seed, command=COMMAND,
            scale=f"{CONFIG.people} people, {CONFIG.backbone}, {CONFIG.preset}, {CONFIG.steps} steps; official query "
            "and gallery",
        )  # fmt: skip


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--init", type=Path, default=WEIGHTS)
    parser.add_argument("--work", type=Path, default=ROOT / "runs" / "fro")
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)), help="of training")
    parser.add_argument("--workers", type=int, default=len(os.sched_getaffinity(0)), help="of the synthesis")
    parser.add_argument("--choose", nargs="*", metavar="FIELD=VALUE", help="settings to try, scored on other people")
    parser.add_argument("--so-far", action="store_true", help="record what was computed, compute nothing")
    return parser.parse_args()


def _compute(arguments: argparse.Namespace) -> None:
    data, judge_file = sources()
    check_weights(arguments.init)
    torch.set_num_threads(arguments.threads)
    with Progress(CONFIG.cells(), "cells") as progress:
        study = FroStudy(
            load_market1501(data / "cuhk03-np"), arguments.work, CONFIG,
            Cells(arguments.work, asdict(CONFIG), progress),
            judge=independent_judge(judge_file), init=arguments.init, workers=arguments.workers,
        )  # fmt: skip
        publish(run_study(study), "fro")


def _choose(arguments: argparse.Namespace) -> None:
    config = with_settings(CONFIG, dict(each.split("=", 1) for each in arguments.choose))
    data, judge_file = sources()
    torch.set_num_threads(arguments.threads)
    work = arguments.work / "choice"
    with Progress(2, "cells") as progress:
        study = FroStudy(
            among_training_people(load_market1501(data / "cuhk03-np"), config.people, CHOSEN_BY), work, config,
            Cells(work, asdict(config), progress), judge=independent_judge(judge_file), init=arguments.init,
            workers=arguments.workers,
        )  # fmt: skip
        found = {"pool": study.pool(), f"student, scale {max(config.scales):g}": study.student(max(config.scales))}
    for name, cell in found.items():
        print(f"{name}: mAP {_interval(cell, 'mAP')}, Rank-1 {_interval(cell, 'rank-1')}")


def among_training_people(data: Market1501, people: int, count: int) -> Market1501:
    """The data with another query and gallery: of the `count` training people who follow the first `people`."""
    others = set(data.train.identities[people : people + count + 1])
    records = tuple(record for record in data.train.records if record.identity in others)
    held = hold_out(Split("others", data.train.root, records), count / (count + 1), Randomness.from_seed(CONFIG.seed))
    return Market1501(data.train, held.query, held.gallery)


def rows(cells: Mapping[str, Any]) -> list[dict[str, Any]]:
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
                    "note": f"{_name(metric)}: pool {_interval(pool, metric)}, student {_interval(student, metric)}"
                    + "".join(f", {name} {_interval(cell, metric)}" for name, cell in beside.items())
                    + why,
                }
            )
    students = {scale: cells.get(f"student/fro-{scale:g}") for scale in sorted(CONFIG.scales)}
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
        told = {names: cell for names, cell in clusters.items() if cell}
        found.append(
            {
                "id": "fro-clusters", "claim": "Clusters by person of which Silhouette and ARI are missing",
                "figure": len(clusters) - len(told), "bar": "== 0", "unit": f"of {len(clusters)}",
                "note": "Silhouette / ARI: " + "; ".join(
                    f"{_release(model)} on {_release(seen)} {cell['silhouette']:.2f} / {cell['ari']:.2f}"
                    for (model, seen), cell in told.items()
                ),
            }
        )  # fmt: skip
    return found


def tables(cells: Mapping[str, Any]) -> str:
    """What stands on the method's page: students, likeness, attacks and clusters, as far as they are computed."""
    pool = cells["pool"]
    named = {"student/originals": "student of the originals"}
    named |= {f"student/fro-{scale:g}": f"student of FRO, scale {scale:g}" for scale in CONFIG.scales}
    named["student/fro-paper"] = f"student of FRO as printed, scale {CONFIG.paper_scale:g}"
    named |= {f"student/{name}": f"student of {text}" for name, text in RIVAL_NAMES.items()}
    lines = [
        f"CUHK03-NP (detected, 128x64): {CONFIG.people} training people, official query and gallery, "
        f"{CONFIG.backbone}, preset `{CONFIG.preset}`, {CONFIG.steps} steps, replay temperature {CONFIG.replay:g}, "
        f"seed {CONFIG.seed}, on a CPU. Intervals of 95 % over people.",
        "",
        "| model | pictures | mAP, % | Rank-1, % | mAP kept, % | Rank-1 kept, % |",
        "|---|---|---|---|---|---|",
    ]
    trained = " | ".join(_interval(pool, metric) for metric in KEPT)
    lines.append(f"| pool (trained on the originals) | | {trained} | | |".replace(" %", ""))
    for cell, text in named.items():
        if held := cells.get(cell):
            kept = " | ".join(f"{100 * held[metric][0] / pool[metric][0]:.0f}" for metric in KEPT)
            shown = " | ".join(_interval(held, metric) for metric in KEPT)
            lines.append(f"| {text} | {held['pictures']:,} | {shown} | {kept} |".replace(" %", ""))
    likeness = {name: cells[f"ssim/{name}"]["ssim"] for name in ("fro-1", *RIVAL_NAMES) if f"ssim/{name}" in cells}
    if likeness:
        told = ", ".join(f"{_release(name)} {value:.3f}" for name, value in likeness.items())
        lines += ["", f"Mean SSIM of an original and a released picture of the same class: {told}."]
    shadows = CONFIG.shadows
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
            f"| {_release(model)} | {_release(seen)} | {cell['silhouette']:.3f} | {cell['ari']:.3f} |"
            for (model, seen), cell in clusters.items() if cell
        ]  # fmt: skip
    ratios = {ratio: cells.get(f"mixup/mixup-{ratio:g}") for ratio in CONFIG.ratios}
    if all(ratios.values()):
        lines += ["", "| pool on mix-up, ratio | Silhouette | ARI |", "|---|---|---|"]
        lines += [f"| {r:g} | {cell['silhouette']:.3f} | {cell['ari']:.3f} |" for r, cell in ratios.items() if cell]
    grid = {(t, e): cells.get(f"grid/grid-T{t:g}-e{e:g}") for t in CONFIG.temperatures for e in CONFIG.softenings}
    if all(grid.values()):
        lines += [
            "",
            f"Students of {CONFIG.grid_people} people at scale {CONFIG.grid_scale:g}, mAP / Rank-1 in %:",
            "",
        ]
        lines.append("| T | " + " | ".join(f"epsilon {e:g}" for e in CONFIG.softenings) + " |")
        lines.append("|---" * (1 + len(CONFIG.softenings)) + "|")
        for t in CONFIG.temperatures:
            row = [grid[t, e] for e in CONFIG.softenings]
            shown = (" / ".join(f"{100 * cell[m][0]:.1f}" for m in KEPT) for cell in row if cell)
            lines.append(f"| {t:g} | " + " | ".join(shown) + " |")
    return "\n".join(lines)


def _attacked(name: str, attack: Mapping[str, Any]) -> list[str]:
    if not attack["applicable"]:
        return [f"| `{name}` | not measured: {attack['reason']} | |"]
    found = []
    for score in attack["scores"]:
        interval = "" if score["low"] is None else f" [{score['low']:.3f}, {score['high']:.3f}]"
        chance = attack["chance"].get(score["metric"])
        invalid = "".join(f", INVALID: {why}" for why in attack["invalid"])
        told = "" if chance is None else f"{chance:.3f}"
        found.append(f"| `{name}`: {score['metric']} | {score['value']:.3f}{interval}{invalid} | {told} |")
    return found


def _release(name: str) -> str:
    known = {**RIVAL_NAMES, "train": "training people", "val": "test people"}
    return f"FRO at scale {name.removeprefix('fro-')}" if name.startswith("fro-") else known.get(name, name)


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


def _interval(cell: Mapping[str, Any], metric: str) -> str:
    value, low, high = (100 * each for each in cell[metric])
    return f"{value:.1f} % [{low:.1f}, {high:.1f}]"


if __name__ == "__main__":
    main()
