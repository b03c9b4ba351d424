"""dlib and its model files (extra: faces), and its files of networks, read without it: nothing in them can run.

The format, as dlib's `serialize` writes it: an integer is one byte that holds the count of bytes to follow (its
highest bit the sign), then these bytes, lowest first; a number with a point is two integers, m and e, meaning
m * 2^e; a word is its length and its bytes; a truth is the letter 1 or 0; a tensor is its version, four sizes and
float32 values, lowest byte first. A network is its layers from the image on, each a word for its kind, its own
fields, three truths and three tensors that only training fills.
"""

from __future__ import annotations

import importlib
import math
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from veilkit.errors import CheckpointError, MissingExtraError
from veilkit.experts.names import packaged_file

_PACKAGE = "face_recognition_models"  # importing it would need pkg_resources
IDENTITY = "dlib_face_recognition_resnet_model_v1.dat"
POINTS_5 = "shape_predictor_5_face_landmarks.dat"
POINTS_68 = "shape_predictor_68_face_landmarks.dat"
LICENCES = {
    IDENTITY: "public domain (CC0)",
    POINTS_5: "public domain (CC0)",
    POINTS_68: "trained on iBUG 300-W, whose terms exclude commercial use",
}


def dlib_model(name: str) -> Path:
    """The file of a model, by one of the names above."""
    path = packaged_file(_PACKAGE, name)
    if path is None:
        raise MissingExtraError(f"{name} of {_PACKAGE}", "faces")
    return path


def import_dlib() -> Any:
    """The module dlib."""
    try:
        return importlib.import_module("dlib")
    except ImportError:
        raise MissingExtraError("dlib", "faces") from None


_LARGEST = 2**31  # bytes of a file; more is damage
_LONGEST = 64  # bytes of a word
_HEADERS = 4096  # layers of any sensible network


@dataclass(frozen=True, slots=True)
class DlibLayer:
    """kind: as the file says it, such as con_4. sizes: the integers of its own, in the file's order.

    values: all parameters in a row, as the file has them; empty where it has none.
    """

    kind: str
    sizes: tuple[int, ...]
    values: Tensor


@dataclass(frozen=True, slots=True)
class DlibNetwork:
    """mean: of red, green and blue in [0, 255]. size: rows and columns of an image. layers: from the image on."""

    mean: tuple[float, float, float]
    size: tuple[int, int]
    layers: tuple[DlibLayer, ...]


def read_dlib_network(path: Path) -> DlibNetwork:
    """The network of a .dat file with a metric loss and pictures of one size, as dlib's face networks are."""
    try:
        if path.stat().st_size > _LARGEST:
            raise CheckpointError(
                f"{path.name}: expected at most {_LARGEST:,} bytes, but got {path.stat().st_size:,}"
            )
        data = path.read_bytes()
    except OSError as error:
        raise CheckpointError(f"{path}: the model file cannot be read: {error.strerror}") from None
    reader = _Reader(data, path.name)
    reader.expect(reader.integer(), 1, "version of the loss")
    reader.expect(reader.word(), "loss_metric_2", "loss")
    reader.number()  # the loss's margin
    reader.number()  # and its threshold
    for _ in range(_HEADERS):  # the versions of all layers, from the last to the first, which has another one
        if reader.integer() == 3:
            break
    reader.expect(reader.word(), "input_rgb_image_sized", "input")
    mean = (reader.number(), reader.number(), reader.number())
    size = (reader.integer(), reader.integer())
    layers = [_layer(reader)]
    reader.expect(reader.integer(), 1, "number of samples per image")  # which the first layer alone has
    while not reader.ended:
        layers.append(_layer(reader))
    return DlibNetwork(mean, size, tuple(layers))


class _Reader:
    """A place in the bytes of a file that moves on with all that is read."""

    def __init__(self, data: bytes, name: str) -> None:
        self._data, self._name, self._at = data, name, 0

    @property
    def ended(self) -> bool:
        return self._at == len(self._data)

    def expect(self, found: object, wanted: object, what: str) -> None:
        if found != wanted:
            raise self.damaged(f"expected {what} {wanted!r}, but got {found!r}")

    def damaged(self, why: str) -> CheckpointError:
        return CheckpointError(
            f"{self._name}: {why} (byte {self._at:,}); expected dlib_face_recognition_resnet_model_v1.dat"
        )

    def take(self, count: int) -> bytes:
        if not 0 <= count <= min(_LARGEST, len(self._data) - self._at):
            raise self.damaged("the file ends too early")
        taken = self._data[self._at : self._at + count]
        self._at += count
        return taken

    def integer(self) -> int:
        control = self.take(1)[0]
        count = control & 0x0F
        if count > 8 or control & 0x70:
            raise self.damaged("expected an integer")
        value = int.from_bytes(self.take(count), "little")
        return -value if control & 0x80 else value

    def number(self) -> float:
        mantissa, exponent = self.integer(), self.integer()
        if abs(exponent) > 2000:  # dlib's signs for infinity and no number
            raise self.damaged("expected a finite number")
        try:
            return math.ldexp(mantissa, exponent)
        except OverflowError:
            raise self.damaged("expected a number of 64 bits") from None

    def word(self) -> str:
        length = self.integer()
        if length > _LONGEST:
            raise self.damaged("expected a word")
        return self.take(length).decode("latin-1")

    def truth(self) -> bool:
        letter = self.take(1)
        if letter not in (b"0", b"1"):
            raise self.damaged("expected a truth")
        return letter == b"1"

    def integers(self, count: int) -> tuple[int, ...]:
        return tuple(self.integer() for _ in range(count))

    def tensor(self) -> Tensor:
        self.expect(self.integer(), 2, "version of a tensor")
        sizes = self.integers(4)
        if min(sizes) < 0:
            raise self.damaged("expected the sizes of a tensor")
        count = math.prod(sizes)
        values = np.frombuffer(self.take(4 * count), "<f4").astype(np.float32)
        if not np.isfinite(values).all():
            raise self.damaged("expected finite values in a tensor")
        return torch.from_numpy(values)

    def part(self) -> None:
        """Which part of a tensor something is: a version and four sizes, which follow from the layer's own."""
        self.expect(self.integer(), 1, "version of a part")
        self.integers(4)


def _layer(reader: _Reader) -> DlibLayer:
    kind = reader.word()
    if kind not in _FIELDS:
        raise reader.damaged(f"unknown layer {kind!r}")
    sizes, values = _FIELDS[kind](reader)
    for _ in range(3):
        reader.truth()
    for _ in range(3):
        reader.tensor()
    return DlibLayer(kind, sizes, values)


_Fields = tuple[tuple[int, ...], Tensor]


def _convolution(reader: _Reader) -> _Fields:
    """Sizes: filters, rows, columns, stride and padding down and across. Values: filters, then biases."""
    values, sizes = reader.tensor(), reader.integers(7)
    reader.part()
    reader.part()
    _rates(reader)
    return sizes, values


def _affine(reader: _Reader) -> _Fields:
    """Values: factors, then terms."""
    values = reader.tensor()
    reader.part()
    reader.part()
    return (reader.integer(),), values


def _linear(reader: _Reader) -> _Fields:
    """Sizes: outputs, inputs, whether without bias. Values: inputs x outputs."""
    sizes, values = reader.integers(2), reader.tensor()
    reader.part()
    reader.part()
    sizes = (*sizes, reader.integer())
    _rates(reader)
    return sizes, values


def _pooling(reader: _Reader) -> _Fields:
    """Sizes: rows, columns, stride and padding down and across; none is 0 rows."""
    return reader.integers(6), torch.empty(0)


def _nothing(reader: _Reader) -> _Fields:
    return (), torch.empty(0)


def _rates(reader: _Reader) -> None:
    for _ in range(4):
        reader.number()


_FIELDS: dict[str, Callable[[_Reader], _Fields]] = {
    "con_4": _convolution,
    "affine_": _affine,
    "fc_2": _linear,
    "max_pool_2": _pooling,
    "avg_pool_2": _pooling,
    "relu_": _nothing,
    "add_prev_": _nothing,
}
