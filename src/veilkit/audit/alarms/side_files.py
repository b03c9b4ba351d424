"""What lies beside the pictures and may undo or explain them: networks, arrays, tables of numbers, packed texts."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from veilkit.audit.result import Alarm
from veilkit.datasets.folder import walk
from veilkit.datasets.soft_labels import SOFT_LABELS
from veilkit.pipeline.formats import is_video
from veilkit.pipeline.manifest import MANIFEST, SUMS

_LARGEST = 4_000_000  # bytes of a text that is looked at
_PACKED = re.compile(r"[A-Za-z0-9+/_-]{200,}={0,2}|(?:\\x[0-9a-f]{2}){50,}")
_NUMBERS = 65  # in one list: more than a setting has
_TEXT_NUMBERS = re.compile(r"(?:-?\d+(?:\.\d+)?(?:[eE][-+]?\d+)?[\s,;]+){200,}")
_CODE = re.compile(
    r"\bdef \w+\(|\blambda\b|^import \w+|^from \w+ import |\bnp\.|\btorch\.|^function\b|=>", re.MULTILINE
)
_UNDOES = re.compile(
    r"(?:^|[_\-. ])(?:decod\w*|inver\w*|undo\w*|recover\w*|revert\w*|decrypt\w*|permutation|mapping)", re.I
)
_MAGIC = (
    (b"PK\x03\x04", "a packed network or arrays"), (b"\x93NUMPY", "an array"), (b"\x80\x02", "a pickle"),
    (b"\x80\x03", "a pickle"), (b"\x80\x04", "a pickle"), (b"\x80\x05", "a pickle"), (b"\x89HDF", "arrays"),
    (b"\x1f\x8b", "a packed file"), (b"SQLite format 3", "a database"), (b"7z\xbc\xaf", "a packed file"),
    (b"\xfd7zXZ", "a packed file"), (b"BZh", "a packed file"),
)  # fmt: skip
_NETWORKS = {
    ".safetensors",
    ".onnx",
    ".pt",
    ".pth",
    ".ckpt",
    ".h5",
    ".pkl",
    ".tflite",
    ".npz",
    ".npy",
    ".joblib",
    ".bin",
}


def check_side_files(release: Path) -> Iterator[Alarm]:
    """Look into every file of a release that is no picture."""
    what: dict[str, None] = {}
    for path, is_image in sorted(walk(release)):
        if is_image or path in (SUMS, SOFT_LABELS) or is_video(release / path):
            continue
        place = MANIFEST if path == MANIFEST else "another file"  # whose name may be somebody's
        what |= dict.fromkeys(f"{found} in {place}" for found in _found(release / path, path == MANIFEST))
    if what:
        yield Alarm(
            "side file",
            f"the release holds {', '.join(what)}: what is published beside pictures may undo them or say who is in "
            "them, and no attack here has looked at it. A release needs its pictures and a list of settings",
        )


def _found(file: Path, is_manifest: bool) -> Iterator[str]:
    try:
        if not file.is_file():
            return
        with file.open("rb") as opened:
            data = opened.read(_LARGEST)
    except OSError:
        return
    if file.suffix.lower() in _NETWORKS or data[8:10] == b'{"':
        yield "a network or arrays"
        return
    for magic, name in _MAGIC:
        if data.startswith(magic):
            yield name
            return
    text = data.decode("utf-8-sig", errors="replace")
    if "\0" in text or text.count("\ufffd") > len(text) / 50:
        yield "data that is no text"
        return
    if _PACKED.search(text):
        yield "packed data"
    if _TEXT_NUMBERS.search(text):
        yield "a table of numbers"
    try:
        values = json.loads(text)
    except (ValueError, RecursionError):
        values = None
    yield from dict.fromkeys(_entries(values, ""))
    if is_manifest and values is None and _CODE.search(text):
        yield "code"


def _entries(values: Any, name: str) -> Iterator[str]:
    """What entries of parsed JSON hold that no setting is."""
    if isinstance(values, dict):
        for inside, value in values.items():
            yield from _entries(value, str(inside))
    elif isinstance(values, list):
        if sum(isinstance(value, int | float) for value in _flat(values)) >= _NUMBERS:
            yield "a list of numbers"
        for value in values:
            yield from _entries(value, name)
    elif isinstance(values, str):
        if _CODE.search(values):
            yield "code"
        if values and _UNDOES.search(name) and not re.fullmatch(r"[0-9a-f]{64}", values):
            yield "an entry on how to undo it"


def _flat(values: list[Any]) -> Iterator[Any]:
    for value in values:
        if isinstance(value, list):
            yield from _flat(value)
        else:
            yield value
