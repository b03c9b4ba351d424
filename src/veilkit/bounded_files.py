"""Files of others, read within bounds: JSON objects and safetensors. Nothing is allocated that is not in the file."""

from __future__ import annotations

import contextlib
import json
import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NoReturn

from safetensors import SafetensorError, safe_open
from torch import Tensor

from veilkit.errors import CheckpointError

MOST_CHARACTERS = 2**24  # some hundred thousand names of people
MOST_VALUES = 2_000_000
MOST_DEPTH = 32
LARGEST_INTEGER = 2**63 - 1


def read_object(text: str) -> dict[str, Any]:
    """The object that `text` is; raises ValueError with the reason where it is none, or one that no model has."""
    if len(text) > MOST_CHARACTERS:
        raise ValueError(f"it has {len(text):,} characters, more than {MOST_CHARACTERS:,}")
    if text.count(",") > MOST_VALUES:
        raise ValueError(f"it holds more than {MOST_VALUES:,} values")
    try:
        value = json.loads(text, parse_constant=_refuse_constant, object_pairs_hook=_without_repeats)
    except RecursionError:
        raise ValueError(f"it is nested more than {MOST_DEPTH} levels deep") from None
    if not isinstance(value, dict):
        raise ValueError("it is not a JSON object")
    check_plain(value)
    return value


def check_plain(value: object, depth: int = MOST_DEPTH) -> None:
    """Raise ValueError for lists and objects nested too deeply, and for numbers out of range."""
    waiting = [(value, 0)]
    while waiting:  # not by recursion: its depth is what is being checked
        each, level = waiting.pop()
        if isinstance(each, dict | list | tuple):
            if level >= depth:
                raise ValueError(f"it is nested more than {depth} levels deep")
            waiting += [(part, level + 1) for part in (each.values() if isinstance(each, dict) else each)]
        elif isinstance(each, float) and not math.isfinite(each):
            raise ValueError(f"it holds the number {each}")
        elif isinstance(each, int) and abs(each) > LARGEST_INTEGER:
            raise ValueError("it holds an integer of more than 64 bits")


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"it holds the number {name}")


def _without_repeats(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError("a name occurs twice in one object")
    return found


# The layout of safetensors is an 8-byte length, that many bytes of JSON (padded with spaces), and the tensors, whose
# offsets count from the header's end.
MOST_BYTES = 2**33  # of a file; the state of the largest training is about a quarter of it
MOST_HEADER = 2**25
MOST_TENSORS = 100_000
MOST_AXES = 8
LONGEST_NAME = 512
NUMBER_TYPES = frozenset({"F64", "F32", "F16", "BF16", "I64", "I32", "I16", "I8", "U8", "BOOL"})


def read_safetensors(path: Path) -> tuple[dict[str, str], dict[str, Tensor]]:
    """Metadata and tensors; raises CheckpointError for what is no such file, or no sensible one."""
    with _opened(path) as file:
        names = list(file.keys())
        if len(names) > MOST_TENSORS:
            raise CheckpointError(f"{path.name}: it holds {len(names):,} tensors, more than {MOST_TENSORS:,}")
        for name in names:
            _check_tensor(path, file, name)
        return dict(file.metadata() or {}), {name: file.get_tensor(name) for name in names}


def read_metadata(path: Path) -> dict[str, str]:
    """The texts in the header; no tensor is read."""
    with _opened(path) as file:
        return dict(file.metadata() or {})


@contextlib.contextmanager
def _opened(path: Path) -> Iterator[Any]:
    if not path.is_file():
        raise CheckpointError(f"{path}: no such model file")
    try:
        _check_header(path)
        with safe_open(path, framework="pt") as file:
            yield file
    except (SafetensorError, OSError, ValueError, RuntimeError, TypeError) as error:
        hint = "pickle files are not loaded" if _looks_pickled(path) else "it is damaged or of another format"
        raise CheckpointError(f"{path.name}: not a safetensors file; {hint}") from error


def _check_header(path: Path) -> None:
    """The file itself states its header's length, and the header's JSON takes many times that in memory."""
    size = path.stat().st_size
    with path.open("rb") as file:
        length = int.from_bytes(file.read(8), "little")
    if size > MOST_BYTES:
        raise CheckpointError(f"{path.name}: it has {size:,} bytes; model files have at most {MOST_BYTES:,}")
    if 8 + length <= size and length > MOST_HEADER:
        raise CheckpointError(f"{path.name}: its header has {length:,} bytes; expected at most {MOST_HEADER:,}")


def _check_tensor(path: Path, file: Any, name: str) -> None:
    part = file.get_slice(name)
    shape, kind = part.get_shape(), part.get_dtype()
    shown = name if len(name) <= LONGEST_NAME else f"{name[:60]}..."
    if len(name) > LONGEST_NAME or len(shape) > MOST_AXES or math.prod(max(side, 1) for side in shape) > MOST_BYTES:
        raise CheckpointError(f"{path.name}: no model has a tensor like {shown} of shape {shape[:MOST_AXES]}")
    if kind not in NUMBER_TYPES:
        raise CheckpointError(
            f"{path.name}: {shown} has numbers of type {kind}; expected one of {', '.join(sorted(NUMBER_TYPES))}"
        )


def _looks_pickled(path: Path) -> bool:
    with path.open("rb") as file:
        head = file.read(4)
    return head[:1] == b"\x80" or head == b"PK\x03\x04"  # a bare pickle, or torch's archive around one
