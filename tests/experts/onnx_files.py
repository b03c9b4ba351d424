"""Tiny ONNX files, encoded by hand: protobuf needs no more than varints and length-prefixed fields."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

FLOAT, INT64, BOOL = 1, 7, 9  # TensorProto.DataType
_INT_ATTRIBUTE, _TENSOR_ATTRIBUTE, _GRAPH_ATTRIBUTE = 2, 4, 5  # AttributeProto.AttributeType
Axis = int | str


@dataclass(frozen=True)
class Node:
    """One operation; `ints` are its integer attributes, `more` further ones, encoded."""

    op: str
    inputs: tuple[str, ...]
    output: str
    ints: tuple[tuple[str, int], ...] = ()
    more: tuple[bytes, ...] = ()


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
    attributes += b"".join(_bytes(5, attribute) for attribute in node.more)
    return inputs + _bytes(2, node.output) + _bytes(4, node.op) + attributes


def _tensor(name: str, shape: Sequence[Axis], kind: int = FLOAT) -> bytes:
    axes = b"".join(_bytes(1, _number(1, axis) if isinstance(axis, int) else _bytes(2, axis)) for axis in shape)
    return _bytes(1, name) + _bytes(2, _bytes(1, _number(1, kind) + _bytes(2, axes)))


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
    graph_parts: bytes = b"",
    model_parts: bytes = b"",
) -> Path:
    """A network from the input "in" to `outputs`; `constants` are matrices by name.

    graph_parts, model_parts: further fields of the graph and of the model, encoded.
    """
    graph = b"".join(_bytes(1, _node(node)) for node in nodes) + _bytes(2, "tiny")
    graph += b"".join(_bytes(5, _constant(name, rows)) for name, rows in (constants or {}).items())
    graph += _bytes(11, _tensor("in", input_shape))
    graph += b"".join(_bytes(12, _tensor(name, shape)) for name, shape in outputs)
    opset = _bytes(1, "") + _number(2, 13)
    path.write_bytes(_number(1, 8) + _bytes(7, graph + graph_parts) + _bytes(8, opset) + model_parts)
    return path


MEAN_COLOUR = (Node("GlobalAveragePool", ("in",), "pooled"), Node("Flatten", ("pooled",), "out"))
"""The mean of each colour: (N, 3, H, W) -> (N, 3)."""


def external_tensor(name: str, rows: int, columns: int, location: str) -> bytes:
    """A matrix whose numbers lie in another file."""
    entry = _bytes(13, _bytes(1, "location") + _bytes(2, location))
    return _number(1, rows) + _number(1, columns) + _number(2, FLOAT) + _bytes(8, name) + entry + _number(14, 1)


def external_everywhere(location: str) -> dict[str, tuple[bytes, bytes]]:
    """Every place of a model that may hold a tensor: what is added to its graph, and to the model itself."""
    tensor = external_tensor("w", 3, 2, location)
    sparse = _bytes(1, tensor)
    constant = _node(Node("Constant", (), "w", more=(_bytes(1, "value") + _bytes(5, tensor),)))
    inner = _bytes(1, constant) + _bytes(2, "inner")
    branch = Node("If", ("c",), "w", more=(_bytes(1, "then_branch") + _bytes(6, inner),))
    sparse_value = Node("Constant", (), "w", more=(_bytes(1, "sparse_value") + _bytes(22, sparse),))
    many = Node("Odd", (), "w", more=(_bytes(1, "values") + _bytes(10, tensor),))
    return {
        "initializer": (_bytes(5, tensor), b""),
        "sparse initializer": (_bytes(15, sparse), b""),
        "attribute": (_bytes(1, constant), b""),
        "attribute with many tensors": (_bytes(1, _node(many)), b""),
        "sparse attribute": (_bytes(1, _node(sparse_value)), b""),
        "graph of an attribute": (_bytes(1, _node(branch)), b""),
        "function": (b"", _bytes(25, _bytes(1, "f") + _bytes(7, constant))),
        "training": (b"", _bytes(20, _bytes(1, inner))),
        "only a location": (_bytes(5, _bytes(8, "w") + _number(14, 1)), b""),
        "only an entry": (_bytes(5, _bytes(8, "w") + _bytes(13, _bytes(1, "location") + _bytes(2, location))), b""),
    }


def endless_loop(path: Path) -> Path:
    """The mean colour, handed round in a loop whose condition is always true."""
    body = _bytes(1, _node(Node("Identity", ("on",), "still on"))) + _bytes(1, _node(Node("Identity", ("v",), "w")))
    body += _bytes(2, "body") + _bytes(11, _tensor("i", (), INT64)) + _bytes(11, _tensor("on", (), BOOL))
    body += _bytes(11, _tensor("v", ("n", 3))) + _bytes(12, _tensor("still on", (), BOOL))
    body += _bytes(12, _tensor("w", ("n", 3)))
    loop = _bytes(1, "body") + _bytes(6, body) + _number(20, _GRAPH_ATTRIBUTE)
    true = _number(2, BOOL) + _bytes(8, "true") + _bytes(9, b"\x01")
    nodes = (
        MEAN_COLOUR[0],
        Node("Flatten", ("pooled",), "flat"),
        Node("Loop", ("", "true", "flat"), "out", more=(loop,)),
    )
    return write_onnx(path, nodes, graph_parts=_bytes(5, true), outputs=[("out", ("n", 3))])


def hungry(path: Path, numbers: int) -> Path:
    """The mean colour, spread over so many numbers at once: a small file that takes much memory."""
    shape = _number(1, 2) + _number(2, INT64) + _bytes(8, "shape") + _bytes(9, struct.pack("<2q", 1, numbers))
    axis = (_bytes(1, "axes") + _number(8, 1) + _number(20, 7),)
    nodes = (
        MEAN_COLOUR[0],
        Node("Flatten", ("pooled",), "flat"),
        Node("ReduceMean", ("flat",), "one", more=axis),
        Node("Expand", ("one", "shape"), "many"),
        Node("ReduceMax", ("many",), "most", more=axis),
        Node("Add", ("flat", "most"), "out"),
    )
    return write_onnx(path, nodes, graph_parts=_bytes(5, shape))


def nested(levels: int) -> bytes:
    """A node with a graph with a node with a graph, and so on."""
    graph = _bytes(2, "innermost")
    for _ in range(levels):
        graph = _bytes(1, _node(Node("If", ("c",), "w", more=(_bytes(1, "then_branch") + _bytes(6, graph),))))
    return graph
