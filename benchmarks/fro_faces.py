"""FRO on faces: what `veilkit reproduce fro-faces` computes on LFW, and the claim that follows.

    VEILKIT_DATA=... python benchmarks/fro_faces.py

takes about an hour on two cores; stopped, it goes on with the same command. Pool and students start from
runs/imagenet-mobilenetv2.safetensors, which models/convert_imagenet.py makes as models/cuhk03_mobilenetv2.md says.
"""

from __future__ import annotations

import argparse
import os
import sys
from dataclasses import asdict
from pathlib import Path

import torch

from claims import ROOT, put, record
from imagenet import WEIGHTS, check_weights
from studies.fro.faces import FaceStudyConfig, faces_table, run_faces
from studies.shared.cells import Cells
from veilkit.datasets.lfw import load_lfw
from veilkit.progress import Progress

CONFIG = FaceStudyConfig()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--work", type=Path, default=ROOT / "runs" / "fro-faces")
    parser.add_argument("--threads", type=int, default=len(os.sched_getaffinity(0)), help="of training")
    parser.add_argument("--workers", type=int, default=len(os.sched_getaffinity(0)), help="of the synthesis")
    arguments = parser.parse_args()
    root = os.environ.get("VEILKIT_DATA")
    if not root or not Path(root, "lfw").is_dir():
        sys.exit("LFW is not there; point VEILKIT_DATA at the folder that holds lfw/")
    check_weights(WEIGHTS)
    torch.set_num_threads(arguments.threads)
    with Progress(CONFIG.cells(), "cells") as progress:
        cells = Cells(arguments.work, asdict(CONFIG), progress)
        found = run_faces(
            load_lfw(Path(root, "lfw")), arguments.work, CONFIG, cells, init=WEIGHTS, workers=arguments.workers
        )
    table = faces_table(found)
    told = (
        f"LFW (middle of the deep-funneled pictures, {CONFIG.size[0]}x{CONFIG.size[1]}), {CONFIG.people} training "
        f"people, {CONFIG.backbone}, preset `{CONFIG.preset}`, {CONFIG.steps} steps, scale {CONFIG.scale:g}, seed "
        f"{CONFIG.seed}, on a CPU; rates in %."
    )
    put(ROOT / "docs" / "methods" / "fro.md", "fro-faces", f"{told}\n\n{table}")
    pool, student = (found[name]["accuracy"] for name in ("pool", "student"))
    shown = {
        name: "{:.1f} % [{:.1f}, {:.1f}]".format(*(100 * end for end in found[name]["accuracy"]))
        for name in ("pool", "student", "originals")
    }
    record(
        id="fro-faces", claim="Verification accuracy on LFW that FRO's student loses against the pool",
        figure=round(100 * (pool[0] - student[0]), 1), bar="<= 10", unit="points",
        data="LFW, middle of the deep-funneled pictures, official pairs of folds 8 to 10", seed=CONFIG.seed,
        scale=f"{CONFIG.people} training people, {found['pool']['pairs']} pairs, {CONFIG.backbone}, "
        f"{CONFIG.epochs} epochs, {CONFIG.steps} steps",
        command="VEILKIT_DATA=... python benchmarks/fro_faces.py",
        note=f"pool {shown['pool']}, student {shown['student']}, student of the originals {shown['originals']}",
    )  # fmt: skip


if __name__ == "__main__":
    main()
