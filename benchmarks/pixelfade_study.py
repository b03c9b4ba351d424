"""PixelFade on CUHK03-NP: what `veilkit reproduce pixelfade` computes, and the claims that follow from its cells.

    VEILKIT_DATA=... python benchmarks/pixelfade_study.py

takes hours on two cores; stopped, it goes on with the same command. Needs the research data and the judge as
benchmarks/controls_table.py does; the authorised expert is models/cuhk03_mobilenetv2.safetensors. Releases, cells and
sheets of pictures stay in runs/pixelfade, the tables go to benchmarks/results/pixelfade.md.
Each cell is also kept in benchmarks/results/pixelfade/cells, from where another machine goes on. With --only the
cells named are computed, so that two processes can share the work; with --so-far none: rows and the tables of README
and docs/methods/ are written of the cells that are there.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Mapping
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import torch

from claims import README, ROOT, publish, put, reaches, record
from controls_table import independent_judge, sources
from headline import published_rows, readme
from studies.pixelfade.plan import (
    AVIH,
    AVIH_RELEASED,
    FLOOR,
    ORDER,
    OURS,
    PixelFadeStudyConfig,
    grid_points,
    study_settings,
)
from studies.pixelfade.report import run_study
from studies.pixelfade.study import PixelFadeStudy
from studies.pixelfade.tables import (
    AXES,
    axis_tables,
    backbones_table,
    kept_table,
    matching_table,
    outlines_table,
    recovered_table,
    sizes_table,
)
from studies.shared.attacks import difference
from studies.shared.cells import Cells
from studies.shared.tables import attacks_table, differences, mean_image
from study_cells import keep, read, restore
from veilkit.audit.inputs.cache import Cache
from veilkit.datasets.market1501 import load_market1501
from veilkit.experts import load_expert
from veilkit.progress import Progress
from veilkit.rng import Randomness

NAME, CONFIG = "pixelfade", PixelFadeStudyConfig()
COMMAND = "VEILKIT_DATA=... python benchmarks/pixelfade_study.py"
EXPERT = ROOT / "models" / "cuhk03_mobilenetv2.safetensors"
LOST = {
    "pixelfade-pp": ("protected-protected", "protected queries in a protected gallery", 6),
    "pixelfade-op": ("raw-protected", "original queries in a protected gallery", 4),
}
OTHERS = ("paper", "released")
PAGES = ROOT / "docs" / "methods"
PEOPLE = f"{CONFIG.people} test people, {CONFIG.queries} query and {CONFIG.gallery} gallery pictures each"
SCALE = f"{PEOPLE}; attackers: {CONFIG.public_people} training people, {CONFIG.updates} updates; MobileNetV2"


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
        print(f"proves nothing: {reason}")
    put(PAGES / "pixelfade.md", "pixelfade", tables(cells))
    put(PAGES / "avih.md", "avih", beside_avih(cells))
    put(README, "people", readme(cells, CONFIG, published_rows()))
    for row in rows(cells):
        about = {"data": "CUHK03-NP, detected, 128x64", "seed": CONFIG.seed, "command": COMMAND, "scale": SCALE}
        record(**{**about, **row})


def _arguments() -> argparse.Namespace:
    cores = len(os.sched_getaffinity(0))
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--backbones", nargs="*", default=(), help="further experts, names or files (Table 7)")
    parser.add_argument("--work", type=Path, default=ROOT / "runs" / "pixelfade")
    parser.add_argument("--threads", type=int, default=cores, help="of training")
    parser.add_argument("--workers", type=int, default=cores, help="that protect")
    parser.add_argument("--only", nargs="+", default=(), metavar="CELL", help="as release/avih; records nothing")
    parser.add_argument("--so-far", action="store_true", help="record what was computed, compute nothing")
    return parser.parse_args()


def _compute(arguments: argparse.Namespace) -> None:
    data, judge_file = sources()
    torch.set_num_threads(arguments.threads)
    config = replace(CONFIG, experts=tuple(arguments.backbones))
    judge, work = independent_judge(judge_file), arguments.work
    facts = study_settings(config, load_expert(EXPERT), judge)
    with Progress(config.cells(), "cells") as progress, Cache(work / "features.sqlite") as cache:
        study = PixelFadeStudy(
            load_market1501(data / "cuhk03-np"), work, config, Cells(work, facts, progress), expert=str(EXPERT),
            judge=judge, cache=cache, workers=arguments.workers,
        )  # fmt: skip
        if arguments.only:
            for kind, _, name in (cell.partition("/") for cell in arguments.only):
                getattr(study, kind)(*filter(None, [name]))
        else:
            publish(run_study(study), NAME)


def rows(cells: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The rows of claims that these cells allow.

    What rests on an invalid attack is not claimed; what falls short all the same is told, with the reason.
    """
    found: list[dict[str, Any]] = []
    if ours := cells.get(f"release/{OURS}"):
        found += _kept(ours)
    for name, cell in _kind(cells, "backbone").items():
        found += _kept(cell, name)
    if (row := _ordered(cells)) and (not _unproved(cells) or not reaches(row["figure"], row["bar"])):
        found.append(row)
    if (row := _outline(cells)) and (not _unmarked(cells) or not reaches(row["figure"], row["bar"])):
        found.append(row)
    found += [row for row in (_outline_by_energy(cells), _beside_released(cells)) if row]
    return found


def _ordered(cells: Mapping[str, Any]) -> dict[str, Any] | None:
    """The row of the paper's order of recovery, where all of it was measured."""
    order = cells.get("order")
    if not order or not all(cells.get(f"recovery/{name}") for name in ORDER):
        return None
    told = [
        _recovery(name, cells[f"recovery/{name}"])
        for name in dict.fromkeys((*ORDER, AVIH, *OTHERS))
        if f"recovery/{name}" in cells
    ]
    told.append(f"mean image {cells[f'recovery/{OURS}']['mean image']['SSIM']:.3f}")
    told += [f"{pair} {_interval(value, 1, 4)}" for pair, value in order.items()]
    against = [pair for pair, (_, _, high) in order.items() if high < 0]
    told += [f"against the order: {pair}, see docs/methods/avih.md" for pair in against]
    return {
        "id": "pixelfade-recovery-order",
        "claim": "Recovery SSIM, PixelFade < AVIH as released < mosaic < blur: least lower bound of differences",
        "figure": round(min(low for _, low, _ in order.values()), 4),
        "bar": "> 0",
        "unit": "SSIM",
        "note": "; ".join([*told, *_unproved(cells)]),
    }


def _unproved(cells: Mapping[str, Any]) -> list[str]:
    return _invalid({f"recovery/{name}": cells.get(f"recovery/{name}") for name in ORDER})


def tables(cells: Mapping[str, Any]) -> str:
    """What stands on PixelFade's page, as far as it is computed."""
    releases, recovered, outlines, attacks = (
        _kind(cells, kind) for kind in ("release", "recovery", "outline", "attack")
    )
    parts = [f"CUHK03-NP (detected, 128x64): {SCALE}; seed {CONFIG.seed}, on a CPU. PNG files read back; rates in %, "
             "with 95 % intervals over people."]  # fmt: skip
    if releases:
        parts += ["Recognised by the authorised expert:", matching_table(releases, "expert")]
        parts += ["Change of Rank-1 in points, and what the private ledger says:", kept_table(releases)]
        parts += ["Recognised by a stranger's OSNet, trained on MSMT17:", matching_table(releases, "judge")]
    if recovered := {name: cell for name, cell in recovered.items() if name in releases}:
        parts += [
            f"Recovered by a U-Net; the mean image of the training people scores {mean_image(recovered)}:",
            recovered_table(releases, recovered),
        ]
    if order := cells.get("order"):
        parts.append(differences(order, "recovery SSIM"))
    if sizes := cells.get("sizes"):
        parts += ["Mosaic and blur as they stand, nothing recovered: SSIM to originals of their size, and enlarged:",
                  sizes_table(sizes)]  # fmt: skip
    if attacks:
        parts += ["Stronger attackers on ours:", attacks_table(attacks)]
    if outlines:
        parts += ["Where the person stands:", outlines_table(outlines, releases)]
    if apart := cells.get("outlines"):
        parts.append(differences(apart, "AUC beyond place"))
    if energies := cells.get("energies"):
        parts.append(differences(energies, "AUC by local energy"))
    grid = _kind(cells, "grid")
    points = [point for point in grid_points(CONFIG) if point.cell in grid]
    if points:
        parts.append(
            f"One setting of `{CONFIG.grid_preset}` changed, on {CONFIG.grid_people} people; SSIM and PSNR of the "
            "protected picture to its original:"
        )
        parts += [table for axis in AXES for table in _without_link(axis_tables(axis, points, grid))]
    if backbones := _kind(cells, "backbone"):
        parts += ["Ours for other experts, by which it is also judged:", backbones_table(backbones)]
    return "\n\n".join(parts)


def beside_avih(cells: Mapping[str, Any]) -> str:
    """What stands on AVIH's page: itself beside PixelFade."""
    releases, recovered = (
        {name: cell for name, cell in _kind(cells, kind).items() if name in (OURS, AVIH, AVIH_RELEASED)}
        for kind in ("release", "recovery")
    )
    if AVIH not in releases:
        return "Nothing yet on pictures of real people."
    parts = [f"As on [PixelFade's page](pixelfade.md), which has the other rivals. {SCALE}; seed {CONFIG.seed}."]
    parts += [matching_table(releases, "expert"), kept_table(releases), matching_table(releases, "judge")]
    if recovered := {name: cell for name, cell in recovered.items() if name in releases}:
        parts.append(recovered_table(releases, recovered))
    return "\n\n".join(parts)


def _kind(cells: Mapping[str, Any], kind: str) -> dict[str, Any]:
    """The cells of one kind by their own names, in the study's order where it has one."""
    found = {name.removeprefix(f"{kind}/"): cell for name, cell in cells.items() if name.startswith(f"{kind}/")}
    placed = {name: place for place, name in enumerate((*CONFIG.releases, FLOOR))}
    return dict(sorted(found.items(), key=lambda item: placed.get(item[0], len(placed))))


def _without_link(tables: list[str]) -> list[str]:
    """A title names a figure of the report's folder, which the page does not have."""
    return [table.partition(" ([figure](")[0] if table.startswith("**") else table for table in tables]


def withheld(cells: Mapping[str, Any]) -> list[str]:
    """Attacks that failed their gates: a row that rests on one is missing, unless it falls short all the same."""
    names = [f"recovery/{name}" for name in ORDER] + [f"outline/{name}" for name in (OURS, *OTHERS)]
    return _invalid({name: cells.get(name) for name in names})


def _kept(ours: Mapping[str, Any], other: str = "") -> list[dict[str, Any]]:
    """other: the name of an expert other than the study's."""
    expert, held = ours["expert"], ours["ledger"]["held"]
    suffix, under = (f"-{other}", f" under {other}") if other else ("", "")
    common = {"scale": PEOPLE} if other else {}
    found: list[dict[str, Any]] = []
    for claim, (setting, words, bar) in LOST.items():
        lost = [-100 * part for part in expert["change"][setting]["rank-1"]]
        ranks = [expert["settings"][each]["rank-1"] for each in ("raw-raw", setting)]
        found.append(
            {
                **common, "id": f"{claim}{suffix}",
                "claim": f"Rank-1 that PixelFade (ours) loses{under}, {words}, on files read back",
                "figure": round(lost[0], 1) + 0.0, "bar": f"<= {bar}", "unit": "points",
                "note": f"paired interval [{lost[2]:.1f}, {lost[1]:.1f}]; Rank-1 {_interval(ranks[0], 100, 1)} % "
                f"unprotected, {_interval(ranks[1], 100, 1)} % protected",
            }
        )  # fmt: skip
    found.append(
        {
            **common, "id": f"pixelfade-held{suffix}",
            "claim": f"Test pictures whose 8-bit file keeps PixelFade's constraint (ours){under}",
            "figure": round(100 * held[0], 2), "bar": ">= 99", "unit": "%",
            "note": f"{ours['ledger']['pictures']} pictures, {_interval(held, 100, 2)}; "
            f"{ours['ledger']['steps']:.0f} steps on average",
        }
    )  # fmt: skip
    return found


def _outline(cells: Mapping[str, Any]) -> dict[str, Any] | None:
    """The row of where people stand by a network that learned it, where all of it was measured."""
    row = _apart(cells, "outlines", "AUC beyond place")
    if row is None:
        return None
    at_floor = cells["outlines"][f"{OURS} - {FLOOR}"][1] <= 0
    word = "nobody's outline is told from ours any better than from noise alone" if at_floor else ""
    return {
        **row,
        "id": "pixelfade-outline",
        "claim": "Outline by a network, beyond place: AUC of person against background, ours minus the less of paper "
        "and released, upper bound",
        "note": "; ".join(filter(None, [word, row["note"], *_unmarked(cells)])),
    }


def _outline_by_energy(cells: Mapping[str, Any]) -> dict[str, Any] | None:
    """The row of where people stand by local energy, which nobody has to learn, where all of it was measured."""
    row = _apart(cells, "energies", "AUC, energy")
    return row and {
        **row,
        "id": "pixelfade-outline-energy",
        "claim": "Outline by local energy: AUC of person against background, ours minus the less of paper and "
        "released, upper bound",
    }


def _beside_released(cells: Mapping[str, Any]) -> dict[str, Any] | None:
    """The row that the quicker preset pays for its speed with nothing, where recovery of both was measured."""
    names = (OURS, "released")
    recovered, releases = ({name: cells.get(f"{kind}/{name}") for name in names} for kind in ("recovery", "release"))
    if not all(recovered.values()) or not all(releases.values()):
        return None
    ours, theirs = ({"people": [], **(cell or {})} for cell in recovered.values())
    if not ours["people"] or not theirs["people"]:
        return None
    rng = Randomness.from_seed(CONFIG.seed)
    found = difference(ours["SSIM each"], theirs["SSIM each"], ours["people"], rng)
    ranks = [
        f"Rank-1 of {name}, protected to protected, "
        f"{_interval(cell['expert']['settings']['protected-protected']['rank-1'], 100, 1)} %"
        for name, cell in releases.items() if cell
    ]  # fmt: skip
    told = [_recovery(name, cell) for name, cell in recovered.items() if cell]
    return {
        "id": "pixelfade-preset-recovery",
        "claim": "Recovery SSIM of PixelFade (ours) minus that of its preset released",
        "figure": round(found[0], 4), "bar": "<= 0", "unit": "SSIM",
        "note": "; ".join([f"paired interval [{found[1]:.4f}, {found[2]:.4f}]", *told, *ranks,
                           *_invalid({f"recovery/{name}": cell for name, cell in recovered.items()})]),
    }  # fmt: skip


def _apart(cells: Mapping[str, Any], differences: str, metric: str) -> dict[str, Any] | None:
    outlines = {name: cells.get(f"outline/{name}") for name in (OURS, *OTHERS, FLOOR)}
    apart = cells.get(differences)
    if not apart or not all(outlines.values()):
        return None
    measured = {name: cell for name, cell in outlines.items() if cell}
    least = min(OTHERS, key=lambda name: measured[name]["scores"][metric][0])
    told = [f"{name} {_interval(cell['scores'][metric], 1, 3)}" for name, cell in measured.items()]
    ranks = {name: cells.get(f"release/{name}") for name in (OURS, *OTHERS)}
    told += [
        f"Rank-1 of {name}, protected to protected, "
        f"{_interval(cell['expert']['settings']['protected-protected']['rank-1'], 100, 1)} %"
        for name, cell in ranks.items() if cell
    ]  # fmt: skip
    told += [f"{pair} {_interval(value, 1, 4)}" for pair, value in apart.items()]
    return {
        "figure": round(apart[f"{OURS} - {least}"][2], 4),
        "bar": "< 0",
        "unit": "AUC",
        "note": "; ".join(told),
    }


def _unmarked(cells: Mapping[str, Any]) -> list[str]:
    return _invalid({f"outline/{name}": cells.get(f"outline/{name}") for name in (OURS, *OTHERS)})


def _recovery(name: str, cell: Mapping[str, Any]) -> str:
    return f"{name} {_interval(cell['scores']['SSIM'], 1, 3)}"


def _invalid(attacks: Mapping[str, Any]) -> list[str]:
    reasons = {name: [*cell["invalid"], cell["reason"]] for name, cell in attacks.items() if cell}
    return [f"{name} is INVALID: {'; '.join(filter(None, why))}" for name, why in reasons.items() if any(why)]


def _interval(value: list[float], times: float, digits: int) -> str:
    middle, low, high = (f"{times * part:.{digits}f}" for part in value)
    return f"{middle} [{low}, {high}]"


if __name__ == "__main__":
    main()
