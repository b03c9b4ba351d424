"""Recognisers that studies judge by: names and files as veilkit has them, and the independent judge of people."""

from __future__ import annotations

import os
from pathlib import Path

from veilkit.errors import UsageError
from veilkit.experts import Embedder, load_expert

IMAGENET = "runs/imagenet-mobilenetv2.safetensors"  # models/cuhk03_mobilenetv2.md says how to make it
JUDGE = "osnet-msmt17"
JUDGE_FILE = "osnet_x0_25_msmt17.onnx"
JUDGE_SOURCE = "OSNet x0.25, trained on MSMT17"
JUDGE_SIZE, JUDGE_NORMALISATION = (256, 128), "imagenet"


def load_judge(name: str, data: Path | None) -> Embedder:
    """A recogniser by name or file. `osnet-msmt17` is the file of `judge_file`."""
    if name != JUDGE:
        return load_expert(name)
    from veilkit.experts.onnx import OnnxEmbedder
    from veilkit.experts.preprocessing import NORMALISATIONS, Preprocessing

    norm = NORMALISATIONS[JUDGE_NORMALISATION]
    return OnnxEmbedder.load(judge_file(data), Preprocessing(JUDGE_SIZE, norm.mean, norm.std), source=JUDGE_SOURCE)


def judge_file(data: Path | None) -> Path:
    """The independent judge in $VEILKIT_WEIGHTS, by default the folder `weights` beside the data."""
    given = os.environ.get("VEILKIT_WEIGHTS")
    folder = Path(given) if given else None if data is None else data.resolve().parent / "weights"
    if folder is None or not (folder / JUDGE_FILE).is_file():
        raise UsageError(
            f"the judge {JUDGE} is the file {JUDGE_FILE}, which was looked for in {folder or 'VEILKIT_WEIGHTS'}: set "
            "VEILKIT_WEIGHTS to its folder, or name another one with --judge, such as people"
        )
    return folder / JUDGE_FILE
