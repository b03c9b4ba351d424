"""All methods on CUHK03-NP and LFW: what `veilkit reproduce all` computes, and the tables of README that follow.

    VEILKIT_DATA=... python benchmarks/headline_study.py [--only ROW ...] [--protect] [--so-far]

takes hours on two cores; stopped, it goes on with the same command. Needs the research data, and as judges the files
osnet_x0_25_msmt17.onnx and mobilefacenet.onnx, as benchmarks/controls_table.py does; the general expert is
models/cuhk03_mobilenetv2.safetensors. Attackers who train a recogniser start from
models/cuhk03_efficientnet.safetensors (--start), which knows other people of the same cameras, and of faces from
models/lfw_faces.safetensors (--face-start), which knows others of LFW. Models of methods that learn are looked for in
models/, or given by --model; a method without one is listed as not run. Releases, audits and rows stay in
runs/headline; each row is also kept in benchmarks/results/headline/cells, from where another machine goes on. With
--only the rows named are computed, with --so-far none: README is written of the rows that are there; --protect makes
the releases, for benchmarks/audit_matrix.py, and attacks nothing.
"""

from __future__ import annotations

import argparse
import os
import sys
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import torch

from claims import README, RESULTS, ROOT, put, record
from controls_table import sources
from headline import CONFIG, NAME, published_rows, readme
from pixelfade_study import CONFIG as PIXELFADE
from pixelfade_study import NAME as PIXELFADE_NAME
from studies.comparison.models import Models
from studies.comparison.plan import ENTRIES, AllStudyConfig, Starts
from studies.comparison.study import AllStudy, Judges
from studies.comparison.tables import report
from study_cells import keep, published, restore
from veilkit.audit.inputs.cache import Cache
from veilkit.datasets.lfw import load_lfw
from veilkit.datasets.market1501 import load_market1501
from veilkit.experts.preprocessing import NORMALISATIONS
from veilkit.experts.registry import Addition, add_expert, expert_names

COMMAND = "VEILKIT_DATA=... python benchmarks/headline_study.py"
EXPERT = ROOT / "models" / "cuhk03_mobilenetv2.safetensors"
START = ROOT / "models" / "cuhk03_efficientnet.safetensors"
FACE_START = ROOT / "models" / "lfw_faces.safetensors"
JUDGE, FACE_JUDGE = "osnet-x0.25-msmt17", "mobilefacenet@arcface"


def main() -> None:
    arguments = _arguments()
    restore(arguments.work, NAME, _settings(CONFIG))
    if not arguments.so_far:
        _compute(arguments)
    if arguments.protect:
        return
    keep(arguments.work, NAME)
    rows = published_rows()
    put(README, "people", readme(published(PIXELFADE_NAME), PIXELFADE, rows))
    missing = [name for name in ENTRIES if "levels" not in rows.get(name, ())]
    record(
        id="headline-rows", claim="Rows of README's tables of all methods, for people and for faces, that were not "
        "measured", figure=len(missing), bar="== 0", unit="rows", data="CUHK03-NP, LFW",
        scale=f"{CONFIG.people} people, {CONFIG.faces} people's faces; {CONFIG.updates} updates of each attacker",
        seed=CONFIG.seed, command=COMMAND,
        note=f"not measured yet: {', '.join(missing)}" if missing else f"all {len(ENTRIES)} are there",
    )  # fmt: skip


def _arguments() -> argparse.Namespace:
    cores = len(os.sched_getaffinity(0))
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--work", type=Path, default=ROOT / "runs" / NAME)
    parser.add_argument("--models", type=Path, default=ROOT / "models")
    parser.add_argument("--model", action="append", default=[], metavar="METHOD=FILE")
    parser.add_argument("--start", type=Path, default=START, help="of attackers who train a recogniser")
    parser.add_argument("--face-start", type=Path, default=FACE_START, help="the same, of faces")
    parser.add_argument("--only", nargs="+", default=[], metavar="ROW", help="as pixelfade or face-blur")
    parser.add_argument("--workers", type=int, default=cores, help="that protect and attack")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--protect", action="store_true", help="make the releases only, and attack nothing")
    parser.add_argument("--so-far", action="store_true", help="write README of what was computed, compute nothing")
    return parser.parse_args()


def _compute(arguments: argparse.Namespace) -> None:
    data, judge_file = sources()
    if not (data / "lfw").is_dir():
        sys.exit(f"{data / 'lfw'} is not there: check VEILKIT_DATA.")
    torch.set_num_threads(arguments.threads)
    os.environ["VEILKIT_HOME"] = str(arguments.work / "home")  # the judge gets a name there, and nowhere else
    name_judge(judge_file)
    config, work = replace(CONFIG, methods=tuple(arguments.only)), arguments.work
    with Cache(work / "features.sqlite") as cache:
        study = AllStudy(
            load_market1501(data / "cuhk03-np"), load_lfw(data / "lfw"), work, config,
            Judges(str(EXPERT), JUDGE, FACE_JUDGE), Models.of(arguments.models, arguments.model), cache,
            workers=arguments.workers, starts=Starts(arguments.start, arguments.face_start),
        )  # fmt: skip
        if arguments.protect:
            study.protect()
            return
        rows = study.run()
    (RESULTS / f"{NAME}.md").write_text(report(rows, config), encoding="utf-8")


def name_judge(file: Path) -> None:
    if JUDGE not in expert_names():
        add_expert(
            file,
            Addition(
                name=JUDGE, licence="research only (MSMT17)", source="OSNet x0.25, trained on MSMT17",
                size=(256, 128), normalisation=NORMALISATIONS["imagenet"],
            ),
        )  # fmt: skip


def _settings(config: AllStudyConfig) -> dict[str, Any]:
    return {name: value for name, value in asdict(config).items() if name != "methods"}


if __name__ == "__main__":
    main()
