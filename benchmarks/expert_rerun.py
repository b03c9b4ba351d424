"""Does the command that made the CUHK03-NP expert lead there again? Trains once more and compares the figures.

    VEILKIT_DATA=... python benchmarks/expert_rerun.py [WORK_FOLDER]

takes an hour or more; stopped, it goes on with the same command. The training starts from
runs/imagenet-mobilenetv2.safetensors, which models/convert_imagenet.py makes as the card of the model says.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import torch

from claims import ROOT, record
from experts import keep, measure, told
from process import command
from veilkit.datasets.market1501 import load_market1501
from veilkit.experts.torch_embedder import TorchEmbedder

WEIGHTS = ROOT / "runs" / "imagenet-mobilenetv2.safetensors"


def main() -> None:
    root = os.environ.get("VEILKIT_DATA")
    if not root or not Path(root, "cuhk03-np").is_dir():
        sys.exit("CUHK03-NP is not there; point VEILKIT_DATA at the folder that holds cuhk03-np/")
    if not WEIGHTS.is_file():
        sys.exit(f"{WEIGHTS} is not there; models/cuhk03_mobilenetv2.md says how to make it")
    work = Path(sys.argv[1] if len(sys.argv) == 2 else ROOT / "runs" / "cuhk03-rerun")
    work.mkdir(parents=True, exist_ok=True)
    again = work / "model.safetensors"
    training = command(
        "train", "reid", Path(root, "cuhk03-np"), "--out", again, "--init", WEIGHTS, "--recipe", "small"
    )
    subprocess.run([*training, "--work-dir", str(work)], check=True)
    torch.set_num_threads(1)
    data = load_market1501(Path(root, "cuhk03-np"))
    found = []
    for name, file in (("cuhk03", ROOT / "models" / "cuhk03_mobilenetv2.safetensors"), ("cuhk03, run again", again)):
        expert = TorchEmbedder.load(
            file, name=name, licence="research only", source="models/", origin="models/", flip=True
        )
        result, _ = measure(expert, data)
        print(told(name, result), flush=True)
        keep("cuhk03-np", name, result)
        found.append(result)
    first, second = found
    apart = max(abs(first.rank1[0] - second.rank1[0]), abs(first.mean_ap[0] - second.mean_ap[0]))
    record(
        id="cuhk03-rerun", claim="The CUHK03-NP expert's training command, run again: larger difference of the two",
        figure=round(apart, 1), bar="<= 2", unit="points of Rank-1 or mAP", data="CUHK03-NP, detected, 128x64",
        scale="official query and gallery, 1,400 x 5,332", seed=0,
        command="VEILKIT_DATA=... python benchmarks/expert_rerun.py",
        note=f"run again: Rank-1 {second.rank1[0]:.1f} %, mAP {second.mean_ap[0]:.1f} %",
    )  # fmt: skip


if __name__ == "__main__":
    main()
