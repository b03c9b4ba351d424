"""MobileNetV2's ImageNet weights: what networks of the studies start from, and attackers who train a recogniser."""

from __future__ import annotations

import sys
from pathlib import Path

from claims import ROOT

WEIGHTS = ROOT / "runs" / "imagenet-mobilenetv2.safetensors"


def check_weights(*files: Path) -> None:
    """End with a message where one of the files is not there."""
    for file in files:
        if not file.is_file():
            sys.exit(f"{file} is not there; models/cuhk03_mobilenetv2.md says how to make it")
