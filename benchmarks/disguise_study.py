"""Disguise on LFW: what `veilkit reproduce disguise` computes, and the claims that follow from its cells.

    VEILKIT_DATA=... python benchmarks/disguise_study.py --model MODEL [--model OTHER]

takes hours on two cores; stopped, it goes on with the same command. Needs the research data, a trained model (again
for ones with another transform), ImageNet weights that attackers who train a recogniser start from (--start), and the
judges' weights beside the data or in $VEILKIT_WEIGHTS. Releases, cells and sheets of pictures stay in runs/disguise,
the tables go to benchmarks/results/disguise.md. With --so-far nothing is computed: rows and the tables of docs/ are
written of the cells that are there.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import torch

from claims import ROOT, publish, put, reaches, record
from imagenet import WEIGHTS, check_weights
from studies.disguise.models import Models, independent_judges, load_models
from studies.disguise.plan import (
    CONTROLS,
    ORIGINAL,
    RATES,
    STRANGER,
    DisguiseStudyConfig,
    study_settings,
)
from studies.disguise.report import run_study
from studies.disguise.study import DisguiseStudy
from studies.disguise.tables import (
    farthest_table,
    guarantee_table,
    inverted_table,
    landmarks_table,
    name_of,
    order_table,
    recognised_table,
    utility_order_table,
    utility_table,
)
from studies.disguise.utility import BETTER_HIGH, KINDS
from studies.shared.cells import Cells
from studies.shared.tables import attacks_table, with_interval
from study_cells import keep, read, restore
from veilkit.audit.inputs.cache import Cache
from veilkit.datasets.lfw import load_lfw
from veilkit.progress import Progress

NAME, JUDGE = "disguise", "mobilefacenet"
# About an hour and a half of one core; all people of the folds would take six.
CONFIG = DisguiseStudyConfig(people=300, public_people=250, noises=(0.5, 8.0), alone=(1.0,))
COMMAND = "VEILKIT_DATA=... python benchmarks/disguise_study.py --model MODEL"
PAGE = ROOT / "docs" / "methods" / "disguise.md"
MAIN = CONFIG.main
ROWS = (ORIGINAL, STRANGER, *CONFIG.plain)
_LEAST = "lower end of its interval"
# Claims of an order, and how the pairs begin that each is of.
_ORDERS = {
    "transforms": (f"inverted TPR ved < mlp < opp: least sure difference, {_LEAST}", ("opp - mlp", "mlp - ved")),
    "noise": (f"more noise, less inversion of ved: from least to most noise, {_LEAST}", ("ved@",)),
    "noise-mlp": (f"more noise, less inversion of mlp: from least to most noise, {_LEAST}", ("mlp@",)),
}
# A word on why a claim falls short, where it does.
_WHY = {
    "inverted-noise-mlp": "its noise drowns its input at each of these scales, so that what is inverted are the "
    "face's other attributes, which noise on the identity does not touch",
    "kept-expression": "more than by each control, but over pixelation not surely so with as many people; in no "
    "pixelated face is a face seen, and the judge's commonest answer stands in",
}
UNITS = {"landmarks": "% of the eyes' distance", "gaze": "degrees", "expression": "points"}


def main() -> None:
    arguments = _arguments()
    restore(arguments.work, NAME, asdict(CONFIG))
    if not arguments.so_far:
        _compute(arguments)
    cells = read(arguments.work, asdict(CONFIG))
    keep(arguments.work, NAME)
    for reason in withheld(cells):
        print(f"no row: {reason}")
    put(PAGE, NAME, tables(cells))
    for row in rows(cells):
        record(**row, data="LFW, folds 8 to 10, 192x192", seed=CONFIG.seed, command=COMMAND, scale=scale(cells))


def _arguments() -> argparse.Namespace:
    cores = len(os.sched_getaffinity(0))
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", type=Path, action="append", default=[], help="of `veilkit fit disguise`; again")
    parser.add_argument("--start", type=Path, default=WEIGHTS, help="of attackers who train a recogniser")
    parser.add_argument("--work", type=Path, default=ROOT / "runs" / "disguise")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--workers", type=int, default=cores, help="that protect")
    parser.add_argument("--so-far", action="store_true", help="record what was computed, compute nothing")
    return parser.parse_args()


def _compute(arguments: argparse.Namespace) -> None:
    root = os.environ.get("VEILKIT_DATA")
    if not root or not Path(root, "lfw").is_dir():
        sys.exit("set VEILKIT_DATA to the folder that holds lfw/")
    check_weights(arguments.start)
    torch.set_num_threads(arguments.threads)
    work = arguments.work
    models = Models(load_models(arguments.model), CONFIG, work / "transforms")
    judges = independent_judges([JUDGE], models.given)
    facts = study_settings(CONFIG, models.fingerprints(), list(judges.values()), arguments.start)
    with Progress(CONFIG.cells(len(judges)), "cells") as progress, Cache(work / "features.sqlite") as cache:
        study = DisguiseStudy(
            load_lfw(Path(root, "lfw")), work, CONFIG, Cells(work, facts, progress), models=models, judges=judges,
            cache=cache, workers=arguments.workers, start=arguments.start,
        )  # fmt: skip
        publish(run_study(study), NAME)


def rows(cells: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The rows of claims that these cells allow; what rests on an invalid attack is not claimed."""
    return [*_recognised(cells), *_inverted(cells), *_kept(cells), *_taught(cells), *_guaranteed(cells)]


def scale(cells: Mapping[str, Any]) -> str:
    """What the figures are of."""
    about = cells.get("pictures")
    if about is None:
        return f"people of folds {CONFIG.folds}, all cross-person pairs"
    fitted = [kind for kind, together in about["trained together"].items() if not together]
    return (
        f"{about['pictures']} pictures of {about['people']} test people, all cross-person pairs; attackers: "
        f"{about['public people']} others"
        + (f"; {', '.join(fitted)} fitted to the swapper of {MAIN}" if fitted else "")
    )


def _recognised(cells: Mapping[str, Any]) -> list[dict[str, Any]]:
    """TPR of the main release as multiples of the FPR, with everything beside it in the note."""
    verified = _by_release(cells, "verified", ROWS)
    if not {MAIN, ORIGINAL} <= set(verified):
        return []
    found = []
    for rate in RATES:
        key = f"{rate:g}"
        note = "; ".join(f"{name_of(name)} {_percent(cell['TPR'][key])}" for name, cell in verified.items())
        value = verified[MAIN]["TPR"][key][0] / rate
        found.append(
            _row(f"tpr-{key}", f"TPR at FPR {key} by {JUDGE}, which took no part in training, as a multiple of the "
                 f"FPR ({MAIN})", value, "<= 3", "x FPR", 3,
                 f"the judge had a say in the training (see the page); TPR in %: {note}")
        )  # fmt: skip
    key, far = f"{RATES[0]:g}", verified[MAIN]["farthest"]
    found.append(
        _row("farthest", f"farthest match: pairs of one person less alike than all but {key} of strangers, as a "
             f"multiple of that share ({MAIN})", far[key][0] / RATES[0], "<= 3", "x", 3,
             "; ".join(f"{name_of(name)} {_percent(cell['farthest'][key])} %" for name, cell in verified.items()))
    )  # fmt: skip
    return found


def _inverted(cells: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The order of transforms, and of noise, by the lower ends of paired differences."""
    order = cells.get(f"order/{JUDGE}")
    if not order:
        return []
    failed = _failed(cells)
    inverted = _by_release(cells, "inverted", CONFIG.inverted)
    key = f"{RATES[0]:g}"
    beside = "; ".join(
        f"{name_of(name)} {_percent(cell['scores'][f'TPR at FPR {key}'])}"
        for name, cell in inverted.items()
        if f"TPR at FPR {key}" in cell["scores"]
    )
    found = []
    for name, (claim, chosen) in _ORDERS.items():
        there = {pair: order[pair][key] for pair in order if pair.startswith(chosen)}
        sides = {side for pair in there for side in pair.split(" - ")}
        if there and not any(_unsure(pair, order, failed) for pair in there):
            note = "; ".join(f"{pair} {_percent(value)}" for pair, value in there.items())
            told = "".join(
                f" {each}: INVALID ({failed[each]}), so at least that much." for each in sorted(sides & set(failed))
            )
            worst = min(value[1] for value in there.values())
            found.append(
                _row(f"inverted-{name}", f"{claim}, at FPR {key}", 100 * worst, "> 0", "points", 2,
                     f"differences: {note}. Inverted TPR in %: {beside}.{told}")
            )  # fmt: skip
    return found


def _kept(cells: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Utility against blur, pixelation and random replacement: the least sure advantage's lower end."""
    order, utility = cells.get("utility order"), _by_release(cells, "utility", ROWS, judged=False)
    if not order or MAIN not in utility:
        return []
    found = []
    for kind in KINDS:
        there = {name: order[kind].get(f"{MAIN} - {name}") for name in CONTROLS}
        if None in there.values() or not there:
            continue
        factor = 100 if kind == "expression" else 1
        better = 1 if kind in BETTER_HIGH else -1
        worst = min(factor * min(better * value[1], better * value[2]) for value in there.values())
        beside = "; ".join(
            f"{name_of(name)} {with_interval([factor * part for part in cell[kind]['mean']], 2)}"
            for name, cell in utility.items()
            if "mean" in cell[kind]
        )
        found.append(
            _row(f"kept-{kind}", f"{kind} kept better than by blur, pixelation and random replacement: the least "
                 f"sure advantage, lower end of its interval, by {utility[MAIN][kind]['judge']}", worst, "> 0",
                 UNITS[kind], 3, beside)
        )  # fmt: skip
    return found


def _taught(cells: Mapping[str, Any]) -> list[dict[str, Any]]:
    """A landmark network of disguised faces against those of originals and of blurred faces."""
    taught = {name: cells.get(f"landmarks/{name}", {}) for name in (ORIGINAL, MAIN, "blur")}
    if not all("mean" in cell for cell in taught.values()) or _untaught(cells):
        return []
    note = "; ".join(f"{name_of(name)} {with_interval(cell['mean'], 2)} %" for name, cell in taught.items())
    truth = f"the truth are landmarks of {taught[MAIN]['truth']} on the originals; {note}"
    return [
        _row("taught-original", "a landmark network trained on disguised faces alone: error as a multiple of that of "
             "one trained on originals", taught[MAIN]["ratio"][0], "<= 1.35", "x", 3,
             f"{with_interval(taught[MAIN]['ratio'], 2)}; {truth}"),
        _row("taught-blur", "the same as a share of the error of one trained on blurred faces",
             taught[MAIN]["mean"][0] / taught["blur"]["mean"][0], "< 1", "x", 3, truth),
    ]  # fmt: skip


def _guaranteed(cells: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Whether the paper's calibration is called no guarantee, and the sound channel's three numbers agree."""
    found = cells.get("guarantee")
    if not found:
        return []
    paper, sound = found["paper"], found["privunit"]
    plain = "no formal guarantee" in paper["text"] and paper["epsilon proved"] is None
    return [
        _row("paper-guarantee", "the paper's calibration prints no formal guarantee, and nothing proved", int(plain),
             "== 1", "", 0, paper["text"]),
        _row("sound-guarantee", "the sound channel's measured epsilon, as a share of what is proved",
             sound["epsilon measured"] / sound["epsilon proved"], "<= 1", "of proved", 3,
             f"claimed {sound['epsilon claimed']:g}, proved {sound['epsilon proved']:g}, measured at least "
             f"{sound['epsilon measured']:.2f} in {sound['draws']} draws"),
    ]  # fmt: skip


def tables(cells: Mapping[str, Any]) -> str:
    """What stands on Disguise's page, as far as it is computed."""
    parts = [f"LFW: {scale(cells)}; seed {CONFIG.seed}, on a CPU. PNG files read back; 95 % intervals over people."]
    verified = _by_release(cells, "verified", (*ROWS, *CONFIG.noisy))
    plain = {name: cell for name, cell in verified.items() if name in ROWS}
    utility = _by_release(cells, "utility", ROWS, judged=False)
    if plain:
        parts += [f"Tables 1 and 6, by {JUDGE}:", recognised_table(plain, utility)]
        parts += ["The farthest match:", farthest_table(plain)]
    if inverted := _by_release(cells, "inverted", CONFIG.inverted):
        parts += ["Tables 4, 5, 8 and 9, swapped and inverted:", inverted_table(verified, inverted)]
    if order := cells.get(f"order/{JUDGE}"):
        parts.append(order_table(order))
    if utility:
        parts += ["Tables 2 and 7, what is kept:", utility_table(utility)]
    if order := cells.get("utility order"):
        parts.append(utility_order_table(order))
    taught = {name: cells[f"landmarks/{name}"] for name in CONFIG.trained if f"landmarks/{name}" in cells}
    if taught:
        parts += [
            f"Table 3; the truth are landmarks of {CONFIG.truth} on the originals:",
            landmarks_table(taught),
        ]
    for release in (MAIN, "blur"):
        names = CONFIG.attacks if release == MAIN else CONFIG.compared
        attacks = {name: cells[f"attack/{release}/{name}"] for name in names if f"attack/{release}/{name}" in cells}
        if attacks:
            parts += [f"Attacks on {name_of(release)}:", attacks_table(attacks)]
    if found := cells.get("guarantee"):
        parts += ["What is guaranteed:", guarantee_table(found)]
    return "\n\n".join(parts)


def withheld(cells: Mapping[str, Any]) -> list[str]:
    """Why rows are missing although their cells are there: attacks that failed their gates prove nothing.

    What an invalid attack found is a leak all the same, and could only be more. So an order holds where the attack on
    its greater side is invalid; where that on its lesser side is, it can fail but not hold.
    """
    order, failed = cells.get(f"order/{JUDGE}", {}), _failed(cells)
    less = dict.fromkeys(_less(pair) for pair in order if _unsure(pair, order, failed))
    reasons = [f"inverted/{name}/{JUDGE} is INVALID: {failed[name]}" for name in less]
    if _untaught(cells):
        reasons.append("a landmark network of originals does no better than their mean face: it has learned nothing")
    return reasons


def _untaught(cells: Mapping[str, Any]) -> bool:
    """Whether even originals teach a landmark network nothing; then others have nothing to be compared with."""
    original = cells.get(f"landmarks/{ORIGINAL}", {})
    return "mean" in original and original["mean"][2] >= original["mean face"]


def _failed(cells: Mapping[str, Any]) -> dict[str, str]:
    """Releases whose inversion failed its gates, and why."""
    found = _by_release(cells, "inverted", CONFIG.inverted)
    told = {name: "; ".join(filter(None, (*cell["invalid"], cell["reason"]))) for name, cell in found.items()}
    return {name: why for name, why in told.items() if why}


def _unsure(pair: str, order: Mapping[str, Any], failed: Mapping[str, str]) -> bool:
    """Whether an order seems to hold only because an attack may have learned too little."""
    return _less(pair) in failed and order[pair][f"{RATES[0]:g}"][1] > 0


def _less(pair: str) -> str:
    """The release of which less should be found."""
    return pair.split(" - ")[1]


def _by_release(
    cells: Mapping[str, Any], kind: str, releases: Sequence[str], *, judged: bool = True
) -> dict[str, Any]:
    names = {release: f"{kind}/{release}/{JUDGE}" if judged else f"{kind}/{release}" for release in releases}
    return {release: cells[name] for release, name in names.items() if name in cells}


def _row(name: str, claim: str, figure: float, bar: str, unit: str, digits: int, note: str) -> dict[str, Any]:
    if name in _WHY and not reaches(figure, bar):
        note = f"Falls short: {_WHY[name]}. {note}"
    return {
        "id": f"disguise-{name}", "claim": f"Disguise: {claim}", "figure": round(figure, digits) + 0.0, "bar": bar,
        "unit": unit, "note": note,
    }  # fmt: skip


def _percent(value: Sequence[float]) -> str:
    return with_interval([100 * part for part in value], 2)


if __name__ == "__main__":
    main()
