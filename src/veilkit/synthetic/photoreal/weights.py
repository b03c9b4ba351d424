"""The weights of MobileStyleGAN out of the package random-face, read in place from its OpenVINO files.

The files are known by their SHA-256, so that their layout is known too; others are refused. Nothing is copied. The
package is installed by itself, without what it declares (a second OpenCV, Jupyter): only its data is used.
"""

from __future__ import annotations

import hashlib
import xml.etree.ElementTree as ET
from importlib import metadata
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from veilkit.errors import CheckpointError, UsageError

PACKAGE = "random-face"
VERSION = "2021.7.21.1"
INSTALL = f"pip install --no-deps {PACKAGE}=={VERSION}"
TERMS = (
    "Apache-2.0; trained to imitate a generator of faces that had learned from FFHQ (photographs under CC licences)"
)
_SHA256 = {
    "MappingNetwork.xml": "73e2096cad6e696e4af47df2477e048ab4c42c0e0dec83c7c66604822689e55b",
    "MappingNetwork.bin": "212dd716bdb556e18db603ea97300d4fa3c872b878c726b2402fea80820e7305",
    "SynthesisNetwork.xml": "7918fce515243954d3e06628cb39a23902d6b1d5d02932cc0c2faee7a2aeeedd",
    "SynthesisNetwork.bin": "c7da15fa22d508c82e1c30dd6b4cdf67fe3ccdddaf85b310ee764dbf0c289645",
}
_BLOCKS = 7


def package_file(name: str) -> Path:
    """Where the installed package keeps a file."""
    try:
        files = metadata.files(PACKAGE) or []
    except metadata.PackageNotFoundError:
        files = []
    for file in files:
        path = Path(str(file.locate()))
        if file.name == name and path.is_file():
            return path
    raise UsageError(
        f"photoreal faces need the data of the package {PACKAGE}, which is not installed: run `{INSTALL}`"
    )


class _Graph:
    """An OpenVINO network: its constants, and which layer is followed by which."""

    def __init__(self, name: str) -> None:
        text, raw = (package_file(f"{name}{ending}").read_bytes() for ending in (".xml", ".bin"))
        for ending, content in ((".xml", text), (".bin", raw)):
            if hashlib.sha256(content).hexdigest() != _SHA256[name + ending]:
                raise CheckpointError(
                    f"{name}{ending} of {PACKAGE} is not that of version {VERSION}: run `{INSTALL} --force-reinstall`"
                )
        root = ET.fromstring(text)  # noqa: S314 - a file that is known by its hash
        self._raw = raw
        self.layers = {layer.attrib["id"]: layer for layer in root.iterfind("layers/layer")}
        self._after: dict[str, list[str]] = {}
        self._before: dict[str, list[str]] = {}
        edges = [edge.attrib for edge in root.iterfind("edges/edge")]
        for edge in sorted(edges, key=lambda edge: int(edge["to-port"])):
            self._after.setdefault(edge["from-layer"], []).append(edge["to-layer"])
            self._before.setdefault(edge["to-layer"], []).append(edge["from-layer"])

    def of_type(self, kind: str) -> list[str]:
        """Layers of a kind, in the order of the computation."""
        return [key for key, layer in self.layers.items() if layer.attrib["type"] == kind]

    def _data(self, key: str) -> dict[str, str]:
        data = self.layers[key].find("data")
        return {} if data is None else data.attrib

    def size(self, key: str) -> int:
        """Bytes of a constant."""
        return int(self._data(key)["size"])

    def constant(self, key: str) -> Tensor:
        """A constant's value."""
        shape = [int(side) for side in self._data(key)["shape"].split(",") if side.strip()]
        start = int(self._data(key)["offset"])
        values: NDArray[np.float32] = np.frombuffer(self._raw, "<f4", self.size(key) // 4, start)
        return torch.from_numpy(values.reshape(shape).copy())

    def operand(self, key: str) -> Tensor | None:
        """The constant that a layer takes beside what is computed, if it takes one."""
        constants = [before for before in self._before[key] if self.layers[before].attrib["type"] == "Const"]
        return self.constant(constants[0]) if constants else None

    def operands(self, kind: str) -> list[Tensor]:
        """The constants of all layers of a kind, in the order of the computation."""
        return [value for key in self.of_type(kind) if (value := self.operand(key)) is not None]

    def named(self, name: str) -> Tensor:
        """A constant by its name."""
        return self.constant(next(key for key, layer in self.layers.items() if layer.attrib["name"] == name))

    def factor_after(self, name: str) -> float:
        """What the scale made from the weight of this name is multiplied by; 1 where by nothing."""
        key = next(key for key, layer in self.layers.items() if layer.attrib["name"] == name)
        for _ in range(3):  # matrix product, bias, shape
            key = self._after[key][0]
        factor = self.operand(self._after[key][0])
        return 1.0 if factor is None else float(factor)


def mapping_state() -> dict[str, Tensor]:
    """The state of a `StyleMapping`."""
    graph = _Graph("MappingNetwork")
    constants = [graph.constant(key) for key in graph.of_type("Const") if graph.size(key) >= 512 * 4]
    state = {}
    for index, (weight, bias) in enumerate(zip(constants[::2], constants[1::2], strict=True)):
        state[f"layers.{index}.weight"], state[f"layers.{index}.bias"] = weight, bias
    return state


def synthesis_state() -> dict[str, Tensor]:
    """The state of a `Synthesis`."""
    graph = _Graph("SynthesisNetwork")
    convolutions = graph.operands("Convolution")
    noises = [value for value in graph.operands("Add") if value.ndim == 4 and value.shape[1] == 1 < value.shape[2]]
    state = {"constant": graph.named("m.input.input")}

    def scale(target: str, name: str) -> None:
        factor = graph.factor_after(f"{name}.modulation.weight")
        state[f"{target}.weight"] = graph.named(f"{name}.modulation.weight") * factor
        state[f"{target}.bias"] = graph.named(f"{name}.modulation.bias").flatten() * factor

    def convolution(target: str, name: str) -> None:
        scale(f"{target}.scale", f"{name}.conv")
        state[f"{target}.pointwise.weight"] = convolutions.pop(0)
        state[f"{target}.noise"] = noises.pop(0)
        state[f"{target}.bias"] = graph.named(f"{name}.bias")

    convolution("first", "m.conv1")
    for index in range(_BLOCKS):
        scale(f"blocks.{index}.up", f"m.layers.{index}.up")
        for ours, theirs in (("first", "conv1"), ("second", "conv2")):
            convolution(f"blocks.{index}.{ours}", f"m.layers.{index}.{theirs}")
            depthwise = graph.named(f"m.layers.{index}.{theirs}.conv.weight_dw")
            state[f"blocks.{index}.{ours}.depthwise.weight"] = depthwise.flatten(0, 1)
    last = f"m.layers.{_BLOCKS - 1}.to_img"
    scale("to_image.scale", f"{last}.conv")
    state["to_image.bands.weight"] = graph.named(f"{last}.conv.weight")
    state["to_image.bands.bias"] = graph.named(f"{last}.bias").flatten()
    return state
