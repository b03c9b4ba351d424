"""PrivacyReID on CUHK03-NP: what `veilkit reproduce privacyreid` computes, and the claims that follow from its cells.

    VEILKIT_DATA=... python benchmarks/privacyreid_study.py

takes hours on two cores; stopped, it goes on with the same command. Needs the research data and the judge as
benchmarks/controls_table.py does, and ImageNet weights to start from (--init). States, models, releases, cells and
sheets of pictures stay in runs/privacyreid, the tables go to benchmarks/results/privacyreid.md.
With --so-far nothing is computed: rows and the tables of docs/ are written of the cells that are there.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import torch

from claims import ROOT, publish, put, record
from controls_table import independent_judge, sources
from imagenet import WEIGHTS, check_weights
from studies.privacyreid.plan import (
    BASE,
    LEARNED,
    STAGES,
    STRANGER,
    WITH,
    PrivacyReidStudyConfig,
    study_settings,
)
from studies.privacyreid.report import run_study
from studies.privacyreid.study import PrivacyReidStudy
from studies.privacyreid.tables import (
    checks_table,
    features_table,
    informed_table,
    likeness_table,
    order_table,
    recovered_table,
    settings_table,
    stranger_table,
)
from studies.shared.cells import Cells
from studies.shared.tables import attacks_table, differences, with_interval
from study_cells import keep, read, restore
from veilkit.audit.inputs.cache import Cache
from veilkit.datasets.market1501 import load_market1501
from veilkit.progress import Progress

NAME, CONFIG = "privacyreid", PrivacyReidStudyConfig()
COMMAND = "VEILKIT_DATA=... python benchmarks/privacyreid_study.py"
KIND = "pixelate"  # the first supervision that the claims are about
SETTING = "protected-protected"
PAGE, INFORMED = ROOT / "docs" / "methods" / "privacyreid.md", ROOT / "docs" / "recovery.md"
METHOD = CONFIG.method
SCALE = (
    f"{KIND}; {METHOD.reid.epochs} epochs of {'all' if CONFIG.training_people is None else CONFIG.training_people} "
    f"training people, MobileNetV2; {CONFIG.people} test people, {CONFIG.queries} query and {CONFIG.gallery} gallery "
    f"pictures each; attackers: {CONFIG.public_people} training people, {CONFIG.updates} updates"
)


def main() -> None:
    arguments = _arguments()
    restore(arguments.work, NAME, asdict(CONFIG))
    if not arguments.so_far:
        _compute(arguments)
    cells = read(arguments.work, asdict(CONFIG))
    keep(arguments.work, NAME)
    for reason in withheld(cells):
        print(f"no row: {reason}")
    put(PAGE, "privacyreid", tables(cells))
    put(INFORMED, "privacyreid attackers", informed(cells))
    for row in rows(cells):
        record(**row, data="CUHK03-NP, detected, 128x64", seed=CONFIG.seed, command=COMMAND, scale=SCALE)


def _arguments() -> argparse.Namespace:
    cores = len(os.sched_getaffinity(0))
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--init", type=Path, default=WEIGHTS)
    parser.add_argument("--work", type=Path, default=ROOT / "runs" / "privacyreid")
    parser.add_argument("--threads", type=int, default=cores, help="of training; two trainings at a time share them")
    parser.add_argument("--workers", type=int, default=cores, help="that protect; with two, two trainings at a time")
    parser.add_argument("--so-far", action="store_true", help="record what was computed, compute nothing")
    return parser.parse_args()


def _compute(arguments: argparse.Namespace) -> None:
    data, judge_file = sources()
    check_weights(arguments.init)
    torch.set_num_threads(arguments.threads)
    judge, work = independent_judge(judge_file), arguments.work
    facts = study_settings(CONFIG, judge, arguments.init)
    with Progress(CONFIG.cells(), "cells") as progress, Cache(work / "features.sqlite") as cache:
        study = PrivacyReidStudy(
            load_market1501(data / "cuhk03-np"), work, CONFIG, Cells(work, facts, progress), judge=judge, cache=cache,
            init=arguments.init, workers=arguments.workers, threads=arguments.threads,
        )  # fmt: skip
        publish(run_study(study), NAME)


def rows(cells: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The rows of claims that these cells allow; what rests on an invalid attack is not claimed."""
    found: list[dict[str, Any]] = []
    releases, recovered = (_stages(cells, kind) for kind in ("release", "recovered"))
    if back := recovered.get(WITH):
        found += [
            _row(f"recovered-{metric.lower()}",
                 f"{metric} of pictures recovered from PNG files by the learned decoder",
                 back["pictures"][metric][0], bar, unit, digits,
                 "; ".join(f"{stage} upgradation {with_interval(cell['pictures'][metric], digits)}"
                           for stage, cell in recovered.items()))
            for metric, bar, unit, digits in (("PSNR", ">= 23", "dB", 2), ("SSIM", ">= 0.85", "SSIM", 3))
        ]  # fmt: skip
    if {BASE, WITH} <= set(releases):
        found += [
            _row(f"anonymised-{metric.lower()}",
                 f"{metric} to the originals, anonymised minus desensitised pictures",
                 releases[WITH]["pictures"][metric][0] - releases[BASE]["pictures"][metric][0], bar, unit, digits,
                 "; ".join(f"{stage} {with_interval(cell['pictures'][metric], digits)}"
                           for stage, cell in releases.items()))
            for metric, bar, unit, digits in (("PSNR", "<= 1.0", "dB", 2), ("SSIM", "<= 0.05", "SSIM", 3))
        ]  # fmt: skip
    if order := cells.get(f"order/{KIND}"):
        bounds = {pair: change[SETTING]["rank-1"] for pair, change in order.items()}
        told = [f"{pair} {_points(value)}" for pair, value in bounds.items()]
        told += [
            f"{stage} {_points(cell['own']['settings'][SETTING]['rank-1'])} %" for stage, cell in releases.items()
        ]
        found.append(
            _row("order", "Rank-1, protected in protected, with > without upgradation > base: least lower bound",
                 100 * min(low for _, low, _ in bounds.values()), "> 0", "points", 1, "; ".join(told))
        )  # fmt: skip
    stock = cells.get(f"attack/{KIND}/{WITH}/stock_recogniser")
    if stock and not _invalid({"stock": stock}) and WITH in releases:
        raw, shown = releases[WITH]["judge"]["settings"]["raw-raw"]["rank-1"], stock["scores"]["rank-1"]
        found.append(
            _row("stock", "A stranger's Rank-1 on protected pictures, as a share of that on raw ones",
                 shown[0] / max(raw[0], 1e-9), "<= 0.25", "of raw", 3,
                 f"raw {_points(raw)} %, protected {_points(shown)} %, "
                 f"chance {100 * stock['chance']['rank-1']:.1f} %")
        )  # fmt: skip
    attacks = _attacks(cells, WITH)
    if len(attacks) == len(CONFIG.attacks):
        told = [f"{name} {_points(next(iter(cell['scores'].values())))} %" for name, cell in attacks.items()]
        found.append(
            _row("informed", "Attacks on the release with upgradation without a valid figure and its interval",
                 len(_invalid(attacks)), "== 0", f"of {len(attacks)} attacks", 0,
                 f"Rank-1, of the person or of the very original: {'; '.join(told)}")
        )  # fmt: skip
    return found


def tables(cells: Mapping[str, Any]) -> str:
    """What stands on PrivacyReID's page, as far as it is computed."""
    parts = [f"CUHK03-NP (detected, 128x64): {SCALE}; seed {CONFIG.seed}, on a CPU. PNG files read back; rates in %, "
             "with 95 % intervals over people who were not trained on."]  # fmt: skip
    releases, recovered = (_stages(cells, kind) for kind in ("release", "recovered"))
    if releases:
        parts += ["Table 5, each release searched by the recogniser trained with it:", settings_table(releases)]
    if order := cells.get(f"order/{KIND}"):
        parts += ["Paired differences on the same queries, in points:", order_table(order)]
    if releases:
        parts += ["Table 1, a stranger's OSNet, trained on MSMT17:", stranger_table(releases)]
        parts += ["Likeness to the originals, and Table 3:", likeness_table(releases, recovered)]
    if recovered:
        parts += ["Table 4, retrieval in recovered pictures:", recovered_table(recovered)]
    for stage in LEARNED:
        if checks := cells.get(f"training/{KIND}/{stage}"):
            parts += [
                f"The checks {stage} upgradation, on validation people of the training part:",
                checks_table(checks["checks"]),
            ]
    if features := _stages(cells, "features"):
        parts += ["Figure 9 in numbers, mean cosine distances:", features_table(features)]
    if attacks := _attacks(cells, WITH):
        parts += ["Attacks on the release with upgradation:", attacks_table(attacks)]
    return "\n\n".join(parts)


def informed(cells: Mapping[str, Any]) -> str:
    """What stands on the page about recovery: what everybody gets by what they hold."""
    attacks = _attacks(cells, WITH)
    if not attacks:
        return "Not measured yet."
    recovered = cells.get(f"recovered/{KIND}/{WITH}")
    parts = [f"CUHK03-NP, {SCALE}. Rates in %, with 95 % intervals over people."]
    parts.append(informed_table(attacks, _attacks(cells, BASE), recovered))
    lock = cells.get(f"lock/{KIND}")
    if lock and not _invalid({"recovery": attacks.get("recovery")}):
        parts += [differences(found, metric) for metric, found in lock.items()]
    return "\n\n".join(parts)


def withheld(cells: Mapping[str, Any]) -> list[str]:
    """Why rows are missing although their cells are there: attacks that failed their gates prove nothing."""
    name = f"attack/{KIND}/{WITH}/stock_recogniser"
    return _invalid({name: cells.get(name)})


def _row(name: str, claim: str, figure: float, bar: str, unit: str, digits: int, note: str) -> dict[str, Any]:
    return {
        "id": f"privacyreid-{name}", "claim": f"PrivacyReID: {claim}", "figure": round(figure, digits) + 0.0,
        "bar": bar, "unit": unit, "note": note,
    }  # fmt: skip


def _stages(cells: Mapping[str, Any], kind: str) -> dict[str, Any]:
    """The cells of one kind, by stage, in the study's order."""
    names = {stage: f"{kind}/{KIND}/{stage}" for stage in (STRANGER, *STAGES)}
    return {stage: cells[name] for stage, name in names.items() if name in cells}


def _attacks(cells: Mapping[str, Any], stage: str) -> dict[str, Any]:
    names = {name: f"attack/{KIND}/{stage}/{name}" for name in CONFIG.attacks}
    return {name: cells[cell] for name, cell in names.items() if cell in cells}


def _invalid(attacks: Mapping[str, Any]) -> list[str]:
    reasons = {name: [*cell["invalid"], cell["reason"]] for name, cell in attacks.items() if cell}
    return [f"{name} is INVALID: {'; '.join(filter(None, why))}" for name, why in reasons.items() if any(why)]


def _points(value: Sequence[float]) -> str:
    return with_interval([100 * part for part in value], 1)


if __name__ == "__main__":
    main()
