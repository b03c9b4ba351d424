"""Model files that lie, made of tiny valid ones: equal seeds give equal files."""

from __future__ import annotations

import copy
import json
import random
import struct
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import torch
from safetensors import safe_open
from safetensors.torch import save
from torch import Tensor

from veilkit.checkpoint import FORMAT, content_sha256

VALUES: tuple[Any, ...] = (
    5, -1, 0, 2**31, 2**62, 2**200, 1e308, -0.5, True, None, "", "5", "x\0y", "a" * 5000, "../../etc/passwd", [], {},
    [[]], [-1], [10_000_000], [2**40, 2**40], [1] * 5000, ["a", 5], {"a": 1}, {"width": {"width": 2}},
)  # fmt: skip
DEEP = "[" * 5000 + "]" * 5000


def parts_of(path: Path) -> tuple[str, dict[str, Any], dict[str, Tensor]]:
    """Kind, configuration and tensors of a valid model file."""
    with safe_open(path, framework="pt") as file:
        metadata = file.metadata()
        return metadata["kind"], json.loads(metadata["config"]), {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118


def written(kind: str, config: object, tensors: dict[str, Tensor], text: str | None = None) -> bytes:
    """A model file whose hash is right, so that nothing but its content is wrong. text: in place of config's JSON."""
    plain = json.dumps(config, sort_keys=True, separators=(",", ":")) if text is None else text
    try:
        sha256 = content_sha256(tensors, config, kind)  # type: ignore[arg-type]
    except (ValueError, RecursionError, AttributeError):
        sha256 = "0" * 64
    owned = {name: tensor.contiguous().clone() for name, tensor in tensors.items()}
    return save(owned, {"format": FORMAT, "kind": kind, "config": plain, "sha256": sha256})


def crafted(valid: Path, count: int, seed: int = 0) -> Iterator[tuple[str, bytes]]:
    """`count` files, and what is wrong with each."""
    rng = random.Random(seed)
    kind, config, tensors = parts_of(valid)
    whole = valid.read_bytes()
    makers: tuple[Callable[[], tuple[str, bytes]], ...] = (
        lambda: _other_value(rng, kind, config, tensors),
        lambda: _other_value(rng, kind, config, tensors),
        lambda: _without_field(rng, kind, config, tensors),
        lambda: _other_text(rng, kind, config, tensors),
        lambda: _other_tensors(rng, kind, config, tensors),
        lambda: _other_bytes(rng, whole),
    )
    for number in range(count):
        yield makers[number % len(makers)]()


def _places(value: object, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The path of every value in a configuration."""
    if path:
        yield path
    if isinstance(value, dict | list):
        items = value.items() if isinstance(value, dict) else enumerate(value)
        for key, part in items:
            yield from _places(part, (*path, key))


def _at(config: Any, path: tuple[Any, ...]) -> Any:
    for key in path[:-1]:
        config = config[key]
    return config


def _other_value(
    rng: random.Random, kind: str, config: dict[str, Any], tensors: dict[str, Tensor]
) -> tuple[str, bytes]:
    changed, value = copy.deepcopy(config), rng.choice(VALUES)
    path = rng.choice(list(_places(config)))
    _at(changed, path)[path[-1]] = value
    return f"{'.'.join(map(str, path))} = {str(value)[:40]}", written(kind, changed, tensors)


def _without_field(
    rng: random.Random, kind: str, config: dict[str, Any], tensors: dict[str, Tensor]
) -> tuple[str, bytes]:
    changed = copy.deepcopy(config)
    path = rng.choice([each for each in _places(config) if isinstance(each[-1], str)])
    where = _at(changed, path)
    if rng.random() < 0.5:
        where[f"{path[-1]} of another"] = where.pop(path[-1])
    else:
        del where[path[-1]]
    return f"no {'.'.join(map(str, path))}", written(kind, changed, tensors)


def _other_text(
    rng: random.Random, kind: str, config: dict[str, Any], tensors: dict[str, Tensor]
) -> tuple[str, bytes]:
    plain = json.dumps(config)
    text = rng.choice([
        "", "{}", "[]", "5", "null", '"x"', "{", DEEP, plain[:-1] + f', "deep": {DEEP}}}',
        plain[:-1] + ', "x": NaN}', plain[:-1] + ', "x": 1e999}', plain[:-1] + f', "x": {"9" * 5000}}}',
        plain[:-1] + f', {plain[1:]}', '{"method": {}}', '{"method": {}, "model": {}}', plain * 2, "\ud7ff",
        '{"network": {}, "taught": {}}', '{"' + "a" * 100_000 + '": 1}',
    ])  # fmt: skip
    try:
        return f"text {text[:30]}", written(kind, json.loads(text), tensors, text)
    except (ValueError, RecursionError):
        return f"text {text[:30]}", written(kind, {}, tensors, text)


def _other_tensors(
    rng: random.Random, kind: str, config: dict[str, Any], tensors: dict[str, Tensor]
) -> tuple[str, bytes]:
    changed = dict(tensors)
    name = rng.choice(sorted(tensors)) if tensors else "absent"
    tensor = tensors.get(name, torch.zeros(2))
    number = torch.zeros_like(tensor)
    made: dict[str, Callable[[], Tensor | None]] = {
        "missing": lambda: None,
        "NaN": lambda: torch.full_like(tensor, torch.nan) if tensor.is_floating_point() else number,
        "infinite": lambda: torch.full_like(tensor, torch.inf) if tensor.is_floating_point() else number,
        "longer": lambda: torch.zeros(3, *tensor.shape),
        "empty": lambda: torch.zeros(0, 7),
        "wide and empty": lambda: torch.zeros(0, 2**40),
        "integers": lambda: torch.zeros(tensor.shape, dtype=torch.int64),
        "beyond float32": lambda: torch.full(tensor.shape, 1e300, dtype=torch.float64),
        "complex": lambda: torch.zeros(tensor.shape, dtype=torch.complex64),
        "scalar": lambda: torch.tensor(1.0),
    }
    what = rng.choice([*made, "extra", "long name"])
    if what == "extra":
        changed["swapper/extra.weight"] = torch.zeros(4)
    elif what == "long name":
        changed["x" * 100_000] = torch.zeros(1)
    elif (other := made[what]()) is None:
        changed.pop(name, None)
    else:
        changed[name] = other
    return f"{name} is {what}", written(kind, config, changed)


def _other_bytes(rng: random.Random, whole: bytes) -> tuple[str, bytes]:
    length = int.from_bytes(whole[:8], "little")
    what = rng.choice(["cut", "flipped", "length", "offsets", "deep header", "type", "not one", "long header"])
    if what == "cut":
        return what, whole[: rng.randrange(len(whole))]
    if what == "flipped":
        data = bytearray(whole)
        for _ in range(rng.randint(1, 8)):
            data[rng.randrange(len(data) if rng.random() < 0.5 else 8 + length)] ^= 1 << rng.randrange(8)
        return what, bytes(data)
    if what == "length":
        return what, struct.pack("<Q", rng.choice([0, 1, 2**31, 2**63, length - 1, length + 8])) + whole[8:]
    header = json.loads(whole[8 : 8 + length])
    if what == "offsets" and len(header) > 1:
        header[rng.choice([name for name in header if name != "__metadata__"])] = {
            "dtype": "F32", "shape": rng.choice([[2**40], [2**62, 2**62], [-1], [1.5], 5]),
            "data_offsets": rng.choice([[0, 2**42], [8, 0], [0, 4], [-4, 0]]),
        }  # fmt: skip
        return what, _framed(json.dumps(header).encode(), whole[8 + length :])
    if what == "deep header":
        return what, _framed(b'{"__metadata__":' + DEEP.encode() + b"}", b"")
    if what == "type" and len(header) > 1:
        name = rng.choice([name for name in header if name != "__metadata__"])
        header[name]["dtype"] = rng.choice(["F8_E4M3", "U64", "F4", "C64", "odd", 5])
        return what, _framed(json.dumps(header).encode(), whole[8 + length :])
    if what == "long header":
        return what, _framed(b'{"__metadata__":{"config":"' + b"x" * 10_000_000 + b'"}}', b"")
    return what, rng.choice([b"", b"\x80\x04K\x05.", b"PK\x03\x04", b"{}", rng.randbytes(1000)])


def _framed(header: bytes, data: bytes) -> bytes:
    return struct.pack("<Q", len(header)) + header + data
