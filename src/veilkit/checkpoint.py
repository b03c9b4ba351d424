"""Model files: safetensors with a JSON config and a SHA-256 over everything; nothing else is loaded.

A pickle can run code when it is opened, so no part of veilkit reads or writes one: weights, optimizer state and
progress counters are all tensors or JSON. A file can still lie. What it says is checked before anything is built of
it, and a network takes no more memory than its own weights in the file allow.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import secrets
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import torch
from safetensors.torch import save as to_safetensors
from torch import Tensor, nn

from veilkit.bounded_files import read_object, read_safetensors
from veilkit.errors import CheckpointError, ConfigError, DataError, DestinationError, UnknownNameError

FORMAT = "veilkit-1"
_LISTED = 6  # tensors named in a message before "and N more"
_SHOWN = 80  # characters of a name in a message

M = TypeVar("M", bound=nn.Module)


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """What a model file holds. `kind` says what the tensors are for, `config` how to build their owner."""

    kind: str
    config: dict[str, Any]
    tensors: dict[str, Tensor]
    sha256: str


def content_sha256(tensors: Mapping[str, Tensor], config: Mapping[str, Any], kind: str) -> str:
    """SHA-256 (hex) of kind, config and every tensor's name, type, shape and bytes; the order does not matter."""
    digest = hashlib.sha256()
    for part in (FORMAT, kind, _canonical(config)):
        digest.update(_framed(part.encode()))
    for name in sorted(tensors):
        tensor = tensors[name].detach().cpu().contiguous()
        digest.update(_framed(f"{name} {tensor.dtype} {tuple(tensor.shape)}".encode()))
        digest.update(tensor.reshape(-1).view(torch.uint8).numpy().tobytes())
    return digest.hexdigest()


def save_checkpoint(path: Path, tensors: Mapping[str, Tensor], config: Mapping[str, Any], kind: str) -> str:
    """Write a model file and return its SHA-256.

    The file appears under its name only when complete: a crash leaves the old one or none. Equal content gives equal
    bytes.
    `config` must survive JSON (lists instead of tuples).
    """
    owned = {name: tensor.detach().cpu().contiguous().clone() for name, tensor in tensors.items()}
    sha256 = content_sha256(owned, config, kind)
    metadata = {"format": FORMAT, "kind": kind, "config": _canonical(config), "sha256": sha256}
    _write_atomically(Path(path), _sorted_header(to_safetensors(owned, metadata)))
    return sha256


def load_checkpoint(
    path: Path, kind: str | Collection[str], expected_sha256: str | None = None, *, unknown: Collection[str] = ()
) -> Checkpoint:
    """Read and verify a model file of one kind, or of one of several.

    unknown: tensors that may hold NaN for what is not known. Weights may not.
    Raises CheckpointError for a file that is not one of ours, is of another kind, was altered since it was written,
    or (with `expected_sha256`) is not the very one that was asked for.
    """
    path = Path(path)
    metadata, tensors = read_safetensors(path)
    if metadata.get("format") != FORMAT:
        raise CheckpointError(
            f"{path.name}: expected a model file of format {FORMAT!r}, but got {_shown(metadata.get('format'))}; "
            "was it written by veilkit?"
        )
    kinds = (kind,) if isinstance(kind, str) else tuple(kind)
    found = metadata.get("kind")
    if found is None or found not in kinds:
        wanted = " or ".join(map(repr, kinds))
        raise CheckpointError(f"{path.name}: expected a model of kind {wanted}, but got {_shown(found)}")
    try:
        config = read_object(metadata["config"])
    except KeyError:
        raise CheckpointError(f"{path.name}: it has no configuration; the file is damaged, fetch it again") from None
    except ValueError as error:
        raise CheckpointError(
            f"{path.name}: its configuration is damaged ({str(error)[:_SHOWN]}); fetch the file again"
        ) from None
    sha256 = content_sha256(tensors, config, found)
    if sha256 != metadata.get("sha256"):
        raise CheckpointError(f"{path.name}: the content does not match its own SHA-256; damaged or altered")
    if expected_sha256 is not None and sha256 != expected_sha256.lower():
        raise CheckpointError(f"{path.name}: expected SHA-256 {expected_sha256.lower()}, but got {sha256}")
    _check_finite({name: tensor for name, tensor in tensors.items() if name not in unknown}, path.name)
    return Checkpoint(found, config, tensors, sha256)


@contextlib.contextmanager
def understood(source: str) -> Iterator[None]:
    """Whatever is wrong with a configuration in here is a fault of the file `source`."""
    try:
        yield
    except (ConfigError, DataError, UnknownNameError) as error:
        raise CheckpointError(f"{source}: its configuration is not understood: {error}") from None


def built(build: Callable[[], M], tensors: Mapping[str, Tensor], source: str) -> M:
    """The module that `build` makes, with the weights `tensors` of the file `source`; names and shapes must agree.

    It is first built without memory. A configuration that asks for more than the file holds is refused there.
    """
    try:
        with understood(source), torch.device("meta"):
            planned = build()
    except (RuntimeError, OverflowError, MemoryError):  # sizes that no number of bytes can tell
        raise CheckpointError(f"{source}: its configuration asks for a network of impossible size") from None
    check_weights(planned, tensors, source)
    module = build()
    load_weights(module, tensors, source)
    return module


def load_weights(module: nn.Module, tensors: Mapping[str, Tensor], source: str) -> None:
    """Copy `tensors` into `module`, converting to its number types; every name and shape must agree.

    `source` names the file in the message of the CheckpointError that lists what does not.
    """
    check_weights(module, tensors, source)
    module.load_state_dict(dict(tensors))


def check_weights(module: nn.Module, tensors: Mapping[str, Tensor], source: str) -> None:
    """Raise CheckpointError unless `tensors` are just what `module` has: names, shapes, fractions or integers."""
    own = module.state_dict()
    problems = [f"missing {name}" for name in own if name not in tensors]
    problems += [f"unexpected {name[:_SHOWN]}" for name in tensors if name not in own]
    for name in own:
        if name not in tensors:
            continue
        given = tensors[name]
        if given.shape != own[name].shape:
            problems.append(f"{name} is {tuple(given.shape)} instead of {tuple(own[name].shape)}")
        elif given.is_floating_point() != own[name].is_floating_point():
            problems.append(f"{name} has numbers of type {given.dtype} instead of {own[name].dtype}")
        elif given.dtype == torch.float64 and not given.to(own[name].dtype).isfinite().all():
            problems.append(f"{name} has numbers beyond {own[name].dtype}")
    if problems:
        listed = "; ".join(problems[:_LISTED])
        more = f"; and {len(problems) - _LISTED} more" if len(problems) > _LISTED else ""
        raise CheckpointError(f"{source}: the tensors do not fit {type(module).__name__}: {listed}{more}")


def refuse_tensors(tensors: Mapping[str, Tensor], source: str) -> None:
    """Raise CheckpointError where the file `source` holds tensors that nothing asks for."""
    if tensors:
        raise CheckpointError(f"{source}: unexpected {', '.join(name[:_SHOWN] for name in list(tensors)[:_LISTED])}")


def half_precision(tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """float32 tensors as float16, for storage at half the size; `load_weights` turns them back."""
    return {name: t.half() if t.dtype == torch.float32 else t for name, t in tensors.items()}


def _canonical(config: Mapping[str, Any]) -> str:
    return json.dumps(config, sort_keys=True, separators=(",", ":"), allow_nan=False)


def _check_finite(tensors: Mapping[str, Tensor], source: str) -> None:
    for name, tensor in tensors.items():
        if tensor.is_floating_point() and not tensor.isfinite().all():
            raise CheckpointError(
                f"{source}: {name[:_SHOWN]} holds NaN or infinite values, which no model does; train it again, or "
                "fetch the file again"
            )


def _shown(text: str | None) -> str:
    return repr(text if text is None or len(text) <= _SHOWN else f"{text[:_SHOWN]}...")


def _framed(data: bytes) -> bytes:
    return len(data).to_bytes(8, "big") + data


def _sorted_header(data: bytes) -> bytes:
    """The same safetensors file with a header in fixed order; the library writes metadata in a random one.

    The layout is an 8-byte length, that many bytes of JSON (padded with spaces to a multiple of 8), and the tensors,
    whose offsets count from the header's end.
    """
    length = int.from_bytes(data[:8], "little")
    header = json.dumps(json.loads(data[8 : 8 + length]), sort_keys=True, separators=(",", ":")).encode()
    header += b" " * (-len(header) % 8)
    return len(header).to_bytes(8, "little") + header + data[8 + length :]


def _write_atomically(path: Path, data: bytes) -> None:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        part = path.with_name(f".{path.name}.{secrets.token_hex(4)}.part")
        try:
            with part.open("xb") as file:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
            part.replace(path)
        except BaseException:
            with contextlib.suppress(OSError):
                part.unlink()
            raise
    except OSError as error:
        raise DestinationError(f"cannot write {path}: {error.strerror or error}") from error
