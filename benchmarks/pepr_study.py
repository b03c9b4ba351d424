"""PEPR-Net on CUHK03-NP: what `veilkit reproduce pepr` computes, and the claims that follow from its cells.

    VEILKIT_DATA=... python benchmarks/pepr_study.py

takes hours on two cores; stopped, it goes on with the same command. Needs the research data and the judge as
benchmarks/controls_table.py does, ImageNet weights for the rivals (--public-init), and opacus for one of them. The
encoders start from a network that was trained to match the same training people (--init). States, models, features,
cells and sheets of pictures stay in runs/pepr, the tables go to benchmarks/results/pepr.md. Each cell is
also kept in benchmarks/results/pepr/cells, from where another machine goes on.
With --only the cells named are computed (training/stage1, model/blur, stage2/stage1/privunit/16), so that two
processes can share the work; with --so-far none: rows and the tables of docs/ are written of the cells there are.
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import torch

from claims import RESULTS, ROOT, publish, put, record
from controls_table import independent_judge, sources
from imagenet import WEIGHTS, check_weights
from studies.peprnet.plan import ALTERNATING, BASELINE, STAGE1, STRONG, PeprStudyConfig, study_settings
from studies.peprnet.report import CURVE, draw_curve, run_study
from studies.peprnet.study import PeprStudy
from studies.peprnet.tables import (
    averaging_table,
    changes_table,
    curve_table,
    encoders_table,
    losses_table,
    membership_table,
    noise_table,
    pictures_table,
    reconstruction_table,
)
from studies.shared.cells import Cells
from studies.shared.tables import with_interval
from study_cells import keep, read, restore
from veilkit.attacks.identify import CLASSIFIERS
from veilkit.audit.inputs.cache import Cache
from veilkit.datasets.market1501 import load_market1501
from veilkit.progress import Progress

NAME, CONFIG = "pepr", PeprStudyConfig()
COMMAND = "VEILKIT_DATA=... python benchmarks/pepr_study.py"
PAGE = ROOT / "docs" / "methods" / "peprnet.md"
FORMS = {STAGE1: "the paper's form", ALTERNATING: "the alternating form", STRONG: "the alternating form at weight 1"}
# Why identification stays, by the losses of the trainings.
REASONS = {
    STAGE1: "a head that is only driven to uniform never learns anybody, so that there is nothing to hide from it",
    ALTERNATING: "its weight is too small to be felt beside the Re-ID loss",
    STRONG: "the head is misled, but matching keeps a person's features together, which is enough to identify",
}
EPSILON, DIMENSION, TIMES = "16", 512, 5.0
SEARCHES = {"person": "the person, by another picture,", "record": "the very picture"}
SCALE = (
    f"{'all' if CONFIG.training_people is None else CONFIG.training_people} training and "
    f"{'all' if CONFIG.people is None else CONFIG.people} test people, {CONFIG.method.backbone} that begins as "
    f"models/cuhk03_mobilenetv2, {CONFIG.method.epochs} epochs at {CONFIG.method.size[0]}x{CONFIG.method.size[1]}"
)


def main() -> None:
    arguments = _arguments()
    restore(arguments.work, NAME, asdict(CONFIG))
    if not arguments.so_far:
        _compute(arguments)
    if arguments.only:
        return
    cells = read(arguments.work, asdict(CONFIG))
    keep(arguments.work, NAME)
    for reason in withheld(cells):
        print(f"no row: {reason}")
    put(PAGE, "peprnet", tables(cells))
    if curves := _curves(cells):
        (RESULTS / NAME).mkdir(parents=True, exist_ok=True)
        draw_curve(RESULTS / NAME / CURVE, curves)
    for row in rows(cells):
        record(**row, data="CUHK03-NP, detected, 128x64", seed=CONFIG.seed, command=COMMAND, scale=SCALE)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--init", type=Path, default=ROOT / "models" / "cuhk03_mobilenetv2.safetensors")
    parser.add_argument("--public-init", type=Path, default=WEIGHTS)
    parser.add_argument("--work", type=Path, default=ROOT / "runs" / "pepr")
    parser.add_argument("--threads", type=int, default=1, help="of training, on which its last bits depend")
    parser.add_argument("--only", nargs="+", default=(), metavar="CELL", help="as training/stage1; records nothing")
    parser.add_argument("--so-far", action="store_true", help="record what was computed, compute nothing")
    return parser.parse_args()


def _compute(arguments: argparse.Namespace) -> None:
    data, judge_file = sources()
    check_weights(arguments.init, arguments.public_init)
    torch.set_num_threads(arguments.threads)
    judge, work = independent_judge(judge_file), arguments.work
    facts = study_settings(CONFIG, judge, arguments.init, arguments.public_init)
    with Progress(CONFIG.cells(), "cells") as progress, Cache(work / "features.sqlite") as cache:
        study = PeprStudy(
            load_market1501(data / "cuhk03-np"), work, CONFIG, Cells(work, facts, progress), judge=judge, cache=cache,
            init=arguments.init, public_init=arguments.public_init,
        )  # fmt: skip
        if arguments.only:
            for cell in arguments.only:
                compute(study, cell)
        else:
            publish(run_study(study), NAME)


def compute(study: PeprStudy, cell: str) -> dict[str, Any]:
    """One cell by its name."""
    kind, *words = cell.split("/")
    values: list[Any] = list(words)
    if kind == "stage2":
        values[2] = float(values[2])
    if kind == "curve":
        values[0] = int(values[0])
    found: dict[str, Any] = getattr(study, kind)(*values)
    return found


def rows(cells: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The rows of claims that these cells allow; what rests on an invalid attack is not claimed."""
    found: list[dict[str, Any]] = []
    for name, words in FORMS.items():
        changed = cells.get(f"change/{name}")
        if changed and not _invalid(cells, name):
            found += _stage1(name, words, changed, cells)
    found += _noise(cells)
    return found


def _stage1(name: str, words: str, changed: Mapping[str, Any], cells: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The paper's claim is a large drop of identification for a small one of mAP: half as much of it is asked for.

    Of CUHK03-NP it reports 26.1 points of identification for 6.3 of mAP.
    """
    told = [f"mAP {_points(changed['mAP'])}, Rank-1 {_points(changed['rank-1'])}"]
    told += [f"{each} {_points(changed[each])}" for each in CLASSIFIERS]
    models = {each: cells.get(f"model/{each}") for each in (BASELINE, name)}
    told += [
        f"{each}: mAP {_points(cell['utility']['mAP'])} %, "
        + ", ".join(f"{by} {_points(cell['identification']['scores'][f'accuracy ({by})'])} %" for by in CLASSIFIERS)
        for each, cell in models.items() if cell
    ]  # fmt: skip
    note = f"{REASONS[name]}; change in points, paired, identities drawn: " + "; ".join(told)
    least = min(CLASSIFIERS, key=lambda by: -changed[by][0])
    return [
        _row(f"{name}-identification",
             f"Stage 1 in {words}: identification it takes away, by the classifier that loses least ({least})",
             -100 * changed[least][0], ">= 13", "points", 1, note),
        _row(f"{name}-map", f"Stage 1 in {words}: mAP that it costs", -100 * changed["mAP"][0], "<= 6.3", "points", 1,
             f"paired interval {_points([-part for part in _flipped(changed['mAP'])])}"),
    ]  # fmt: skip


def _noise(cells: Mapping[str, Any]) -> list[dict[str, Any]]:
    found = []
    for dimension in CONFIG.dimensions:
        kinds = {kind: cells.get(f"curve/{dimension}/{kind}") for kind in ("privunit", "gaussian")}
        points = {kind: (cell or {}).get(EPSILON) for kind, cell in kinds.items()}
        if not all(points.values()):
            continue
        about = kinds["privunit"]
        for by, words in SEARCHES.items():
            best, other = points["privunit"][by], points["gaussian"][by]
            found.append(
                _row(f"noise-{dimension}-{by}",
                     f"Rank-1 of {words} at epsilon {EPSILON}, {dimension} features: PrivUnit's over Gaussian's",
                     min(best / max(other, 1e-9), 9999.0), f">= {TIMES:g}" if dimension == DIMENSION else ">= 1", "x",
                     1,
                     f"PrivUnit {100 * best:.2f} %, Gaussian {100 * other:.2f} % (delta {CONFIG.delta:g}), without "
                     f"noise {100 * about['clean'][by]:.1f} %, chance {100 / about['people']:.2f} %; "
                     f"{about['people']} people, one noisy picture each, {CONFIG.draws} releases")
            )  # fmt: skip
    return found


def tables(cells: Mapping[str, Any]) -> str:
    """What stands on PEPR-Net's page, as far as it is computed."""
    parts = [f"CUHK03-NP (detected, 128x64): {SCALE}; seed {CONFIG.seed}, on a CPU. Rates in %, with 95 % intervals "
             "over people who were not trained on."]  # fmt: skip
    if models := _named(cells, "model", CONFIG.models):
        parts += ["Table 1, utility against closed-set identification by three classifiers:", encoders_table(models)]
    if changed := _named(cells, "change", CONFIG.changed):
        parts += ["Against the baseline, paired:", changes_table(changed)]
    if trainings := _named(cells, "training", CONFIG.models):
        parts += ["Losses from the first epoch to the last:", losses_table(trainings)]
    noisy = {
        (name, kind, epsilon): cells[cell]
        for name in CONFIG.noisy for kind, epsilon in CONFIG.noises()
        if (cell := f"stage2/{name}/{kind}/{epsilon:g}") in cells
    }  # fmt: skip
    if noisy:
        parts += [
            f"Tables 2 to 4, a gallery with noise (delta {CONFIG.delta:g} for Gaussian, {CONFIG.paper_delta:g} for "
            "the paper's, else 0):",
            noise_table(noisy),
        ]
    if curves := _curves(cells):
        parts += [
            "Rank-1 against epsilon, one noisy picture of each person "
            f"([figure](../../benchmarks/results/{NAME}/{CURVE})):",
            curve_table(curves),
        ]
    if averaged := {kind: cells[f"averaging/{kind}"] for kind in CONFIG.averaged if f"averaging/{kind}" in cells}:
        parts += [
            f"Releases of stage 1 at epsilon {CONFIG.averaging_epsilon:g} with fresh noise, averaged:",
            averaging_table(averaged),  # type: ignore[arg-type]
        ]
    if decoded := _named(cells, "reconstruction", (*CONFIG.reconstructed, "stage1-noisy")):
        parts += ["Pictures reconstructed from features:", reconstruction_table(decoded)]
    if members := _named(cells, "membership", CONFIG.models):
        parts += ["Training people told from others:", membership_table(members)]
    if pictures := _named(cells, "pictures", CONFIG.pictured):
        parts += ["The decoder's pictures as a release:", pictures_table(pictures)]
    if rivals := _named(cells, "rival", CONFIG.rivals):
        parts += ["Rivals:", encoders_table(rivals)]
    return "\n\n".join(parts)


def withheld(cells: Mapping[str, Any]) -> list[str]:
    """Why rows are missing although their cells are there: attacks that failed their gates prove nothing."""
    return list(dict.fromkeys(
        reason for name in FORMS if f"change/{name}" in cells for reason in _invalid(cells, name)
    ))  # fmt: skip


def _invalid(cells: Mapping[str, Any], name: str) -> list[str]:
    found = {each: cells.get(f"model/{each}") for each in (BASELINE, name)}
    reasons = {each: cell["identification"] for each, cell in found.items() if cell}
    return [f"identification of {each} is INVALID: {'; '.join(filter(None, [*cell['invalid'], cell['reason']]))}"
            for each, cell in reasons.items() if cell["invalid"] or cell["reason"]]  # fmt: skip


def _named(cells: Mapping[str, Any], kind: str, names: Sequence[str]) -> dict[str, Any]:
    return {name: cells[f"{kind}/{name}"] for name in names if f"{kind}/{name}" in cells}


def _curves(cells: Mapping[str, Any]) -> dict[Any, Any]:
    return {point: cells[f"curve/{point[0]}/{point[1]}"] for point in CONFIG.curves()
            if f"curve/{point[0]}/{point[1]}" in cells}  # fmt: skip


def _row(name: str, claim: str, figure: float, bar: str, unit: str, digits: int, note: str) -> dict[str, Any]:
    return {
        "id": f"pepr-{name}", "claim": f"PEPR-Net: {claim}", "figure": round(figure, digits) + 0.0, "bar": bar,
        "unit": unit, "note": note,
    }  # fmt: skip


def _flipped(value: Sequence[float]) -> list[float]:
    return [value[0], value[2], value[1]]


def _points(value: Sequence[float]) -> str:
    return with_interval([100 * part for part in value], 1)


if __name__ == "__main__":
    main()
