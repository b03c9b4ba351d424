"""What an ONNX file refers to, found by walking its protobuf without the package onnx: weights kept in other files.

Only the fields that lead to tensors are followed; everything else is skipped by its length. The numbers are those of
onnx.proto.
"""

from __future__ import annotations

from collections.abc import Iterator

from veilkit.errors import CheckpointError

MOST_DEPTH = 64  # messages within messages; a graph in a node in a graph takes three
MOST_FIELDS = 2_000_000
_DATA_LOCATION, _EXTERNAL_DATA = 14, 13  # of a TensorProto

# For each kind of message: which of its fields are messages that lead to tensors.
_INNER: dict[str, dict[int, str]] = {
    "model": {7: "graph", 20: "training", 25: "function"},
    "training": {1: "graph", 2: "graph"},
    "function": {7: "node", 11: "attribute"},
    "graph": {1: "node", 5: "tensor", 15: "sparse"},
    "node": {5: "attribute"},
    "attribute": {5: "tensor", 6: "graph", 10: "tensor", 11: "graph", 22: "sparse", 23: "sparse"},
    "sparse": {1: "tensor", 2: "tensor"},
    "tensor": {},
}


def refuse_external_data(data: bytes, source: str) -> None:
    """Raise CheckpointError where an ONNX file does not hold all of its weights, or is no protobuf at all.

    A hash of the file says nothing of weights that lie beside it, and they can change under the same hash.
    """
    waiting = [("model", 0, len(data), 0)]
    seen = 0
    while waiting:  # not by recursion: a file decides how deep it is
        kind, start, end, depth = waiting.pop()
        inner = _INNER[kind]
        for field, wire, value, at in _fields(data, start, end, source):
            seen += 1
            if seen > MOST_FIELDS:
                raise CheckpointError(f"{source}: it has more than {MOST_FIELDS:,} parts, which no network has")
            if kind == "tensor" and ((field == _DATA_LOCATION and value) or field == _EXTERNAL_DATA):
                raise CheckpointError(
                    f"{source}: some of its weights are in another file (external data), which could change unseen; "
                    "save the network as one file that holds all of its weights"
                )
            if wire == 2 and field in inner:
                if depth >= MOST_DEPTH:
                    raise CheckpointError(f"{source}: it is nested more than {MOST_DEPTH} levels deep")
                waiting.append((inner[field], at, at + value, depth + 1))


def _fields(data: bytes, start: int, end: int, source: str) -> Iterator[tuple[int, int, int, int]]:
    """(field, wire type, value or length, place of the content) of each field of a message."""
    at = start
    while at < end:
        key, at = _varint(data, at, end, source)
        field, wire = key >> 3, key & 7
        value = 0
        if wire in (0, 2):
            value, at = _varint(data, at, end, source)
        length = {0: 0, 1: 8, 2: value, 5: 4}.get(wire)
        # 3 and 4, groups, are in no ONNX file. Of a longer key, protobuf itself would only see the lower 32 bits.
        if length is None or field == 0 or key >= 2**32 or length > end - at:
            raise CheckpointError(f"{source}: not an ONNX file; it is damaged or of another format")
        yield field, wire, value, at
        at += length


def _varint(data: bytes, at: int, end: int, source: str) -> tuple[int, int]:
    """An integer of seven bits a byte, lowest first, and the place behind it."""
    value = 0
    for shift in range(0, 70, 7):
        if at >= end:
            break
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, at
    raise CheckpointError(f"{source}: not an ONNX file; it is damaged or of another format")
