"""Networks of any origin as ONNX files, run by onnxruntime (extra: onnx). They judge; no gradient passes them."""

from __future__ import annotations

import hashlib
import importlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Unpack

import numpy as np
import torch
from torch import Tensor

from veilkit.errors import CheckpointError, ConfigError, MissingExtraError
from veilkit.experts.base import Description, ExpertInfo, NetworkEmbedder
from veilkit.experts.preprocessing import Preprocessing, size_text

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


MOST_BYTES = 2**31  # protobuf's own limit


@dataclass(frozen=True, slots=True)
class OnnxModel:
    """An opened ONNX file with one image input and one output.

    batch: images it takes at a time, None for any. size: (height, width) it is bound to, None for any.
    """

    session: Any
    input: str
    output: str
    batch: int | None
    size: tuple[int, int] | None
    sha256: str

    def run(self, values: Tensor) -> Tensor:
        """Prepared float32 images (N, 3, H, W) -> the output as onnxruntime gives it, in float32."""
        array = values.contiguous().numpy()
        try:
            (out,) = self.session.run([self.output], {self.input: array})
        except Exception as error:  # onnxruntime's errors share no base class of their own
            raise CheckpointError(f"the ONNX network fails on {tuple(values.shape)}: {_first_line(error)}") from None
        return torch.from_numpy(np.ascontiguousarray(out, dtype=np.float32))


def open_onnx(path: Path) -> OnnxModel:
    """Open an ONNX file that holds its weights itself; raises CheckpointError with what does not fit."""
    runtime = _onnxruntime()
    data = read_onnx(path)
    options = runtime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1  # parallel work is split by process
    options.log_severity_level = 4  # what goes wrong is raised, not printed
    try:
        # From bytes, so that what is run is what is hashed. As ONNX, since by itself onnxruntime takes a file of its
        # own format too, in which nobody has looked for other files.
        options.add_session_config_entry("session.load_model_format", "ONNX")
        session = runtime.InferenceSession(data, options, providers=["CPUExecutionProvider"])
    except Exception as error:  # onnxruntime's errors share no base class of their own
        raise CheckpointError(
            f"{Path(path).name}: onnxruntime cannot open it: {_first_line(error)}; "
            "expected one ONNX file that holds its weights itself"
        ) from None
    batch, size = _image_input(Path(path).name, session.get_inputs())
    outputs = [out.name for out in session.get_outputs()]
    if len(outputs) != 1:
        raise CheckpointError(
            f"{Path(path).name}: expected one output, but got {len(outputs)} ({', '.join(outputs[:6])}); "
            "export the network with its features as the only output"
        )
    sha256 = hashlib.sha256(data).hexdigest()
    return OnnxModel(session, session.get_inputs()[0].name, outputs[0], batch, size, sha256)


def read_onnx(path: Path) -> bytes:
    """The bytes of an ONNX file that refers to no other file."""
    try:
        size = Path(path).stat().st_size
        if size > MOST_BYTES:
            raise CheckpointError(f"{Path(path).name}: an ONNX file has at most {MOST_BYTES:,} bytes, not {size:,}")
        data = Path(path).read_bytes()
    except OSError as error:
        raise CheckpointError(f"{path}: the model file cannot be read: {error.strerror}") from None
    refuse_external_data(data, Path(path).name)
    return data


def check_runtime() -> None:
    """Raise where onnxruntime is not installed."""
    _onnxruntime()


class OnnxEmbedder(NetworkEmbedder):
    """An ONNX network that returns features (N, D); no gradient passes it."""

    def __init__(self, model: OnnxModel, info: ExpertInfo, *, flip: bool = False, batch_size: int = 32) -> None:
        if info.preprocessing is None:
            raise ConfigError("an ONNX expert needs an input size and a normalisation")
        super().__init__(info, flip=flip, batch_size=model.batch or batch_size)
        self._model, self._prepare = model, info.preprocessing

    @classmethod
    def load(
        cls, path: Path, preprocessing: Preprocessing, *, name: str | None = None, flip: bool = False,
        batch_size: int = 32, **description: Unpack[Description],
    ) -> OnnxEmbedder:  # fmt: skip
        """Open an ONNX file; the length of its features is found by embedding one grey image."""
        path = Path(path)
        model = open_onnx(path)
        check_size(path, model.size, preprocessing.size)
        grey = preprocessing(torch.full((1, 3, *preprocessing.size), 0.5))
        dim = _checked(model.run(grey), 1, path.name).shape[1]
        info = ExpertInfo(
            name or path.stem, "embedder", dim, model.sha256, False, preprocessing=preprocessing, **description
        )
        return cls(model, info, flip=flip, batch_size=batch_size)

    def _features(self, images: Tensor) -> Tensor:
        return _checked(self._model.run(self._prepare(images)), len(images), self.name, self.dim)


def check_size(path: Path, bound: tuple[int, int] | None, size: tuple[int, int]) -> None:
    """Raise unless a network that is bound to images of one size, if at all, takes those of `size`."""
    if bound is not None and bound != size:
        raise CheckpointError(
            f"{path.name}: the network takes images of {size_text(bound)}, but the size given is {size_text(size)}"
        )


def _checked(features: Tensor, count: int, name: str, dim: int | None = None) -> Tensor:
    """`features`, which must be (count, D)."""
    if features.ndim != 2 or len(features) != count or (dim is not None and features.shape[1] != dim):
        raise CheckpointError(
            f"{name}: expected features of shape ({count}, {dim or 'D'}) for {count} images, "
            f"but got {tuple(features.shape)}; is this network an embedder?"
        )
    return features


def _image_input(name: str, inputs: list[Any]) -> tuple[int | None, tuple[int, int] | None]:
    """The batch and the size that the only input is bound to; free axes are named or absent, not integers."""
    if len(inputs) != 1:
        listed = ", ".join(i.name for i in inputs[:6])
        raise CheckpointError(f"{name}: expected one input, the images, but got {len(inputs)} ({listed})")
    shape, kind = list(inputs[0].shape), inputs[0].type
    if kind != "tensor(float)" or len(shape) != 4 or (isinstance(shape[1], int) and shape[1] != 3):
        raise CheckpointError(f"{name}: expected an input of float32 (N, 3, H, W), but got {kind} of shape {shape}")
    batch, _, height, width = (axis if isinstance(axis, int) else None for axis in shape)
    if batch not in (None, 1):
        raise CheckpointError(f"{name}: it takes exactly {batch} images at a time; export it with a free batch axis")
    return batch, (height, width) if height is not None and width is not None else None


def _first_line(error: Exception) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0][:300]


def _onnxruntime() -> Any:
    try:
        return importlib.import_module("onnxruntime")
    except ImportError:
        raise MissingExtraError("onnxruntime", "onnx") from None
