"""Tiny ONNX files, encoded by hand: protobuf needs no more than varints and length-prefixed fields."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

FLOAT = 1  # TensorProto.DataType
_INT_ATTRIBUTE = 2  # AttributeProto.AttributeType
Axis = int | str


@dataclass(frozen=True)
class Node:
    """One operation; `ints` are its integer attributes."""

    op: str
    inputs: tuple[str, ...]
    output: str
    ints: tuple[tuple[str, int], ...] = ()


def _varint(value: int) -> bytes:
    out = bytearray()
    while value > 0x7F:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*out, value])


def _number(field: int, value: int) -> bytes:
    return _varint(field << 3) + _varint(value)


def _bytes(field: int, data: bytes | str) -> bytes:
    data = data.encode() if isinstance(data, str) else data
    return _varint(field << 3 | 2) + _varint(len(data)) + data


def _attribute(name: str, value: int) -> bytes:
    return _bytes(1, name) + _number(3, value) + _number(20, _INT_ATTRIBUTE)


def _node(node: Node) -> bytes:
    inputs = b"".join(_bytes(1, name) for name in node.inputs)
    attributes = b"".join(_bytes(5, _attribute(*pair)) for pair in node.ints)
    return inputs + _bytes(2, node.output) + _bytes(4, node.op) + attributes


def _tensor(name: str, shape: Sequence[Axis]) -> bytes:
    axes = b"".join(_bytes(1, _number(1, axis) if isinstance(axis, int) else _bytes(2, axis)) for axis in shape)
    return _bytes(1, name) + _bytes(2, _bytes(1, _number(1, FLOAT) + _bytes(2, axes)))


def _constant(name: str, rows: Sequence[Sequence[float]]) -> bytes:
    values = [value for row in rows for value in row]
    dims = _number(1, len(rows)) + _number(1, len(rows[0]))
    return dims + _number(2, FLOAT) + _bytes(8, name) + _bytes(9, struct.pack(f"<{len(values)}f", *values))


def write_onnx(
    path: Path,
    nodes: Sequence[Node],
    *,
    input_shape: Sequence[Axis] = ("n", 3, 16, 8),
    outputs: Sequence[tuple[str, Sequence[Axis]]] = (("out", ("n", "d")),),
    constants: dict[str, Sequence[Sequence[float]]] | None = None,
) -> Path:
    """A network from the input "in" to `outputs`; `constants` are matrices by name."""
    graph = b"".join(_bytes(1, _node(node)) for node in nodes) + _bytes(2, "tiny")
    graph += b"".join(_bytes(5, _constant(name, rows)) for name, rows in (constants or {}).items())
    graph += _bytes(11, _tensor("in", input_shape))
    graph += b"".join(_bytes(12, _tensor(name, shape)) for name, shape in outputs)
    opset = _bytes(1, "") + _number(2, 13)
    path.write_bytes(_number(1, 8) + _bytes(7, graph) + _bytes(8, opset))
    return path


MEAN_COLOUR = (Node("GlobalAveragePool", ("in",), "pooled"), Node("Flatten", ("pooled",), "out"))
"""The mean of each colour: (N, 3, H, W) -> (N, 3)."""
