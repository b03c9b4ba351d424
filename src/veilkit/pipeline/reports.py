"""What a method says of how a picture was made, as JSON in the private ledger, which somebody may have altered."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping
from typing import Any, NoReturn


def read_report(text: str | None) -> dict[str, Any]:
    """A picture's report, empty where there is none; raises ValueError for what no run has written.

    Looked into are the parts that others than the method read.
    """
    try:
        report = {} if text is None else json.loads(text, parse_constant=_refuse)  # SQLite reads no NaN
    except RecursionError:
        raise ValueError("it is nested too deeply") from None
    if not isinstance(report, dict):
        raise ValueError("it is not a JSON object")
    for name, fits in _PARTS.items():
        if name in report and not fits(report[name]):
            raise ValueError(f"it says of {name} what no method says")
    return report


def _refuse(name: str) -> NoReturn:
    raise ValueError(f"it holds the number {name}")


def _is_count(value: object) -> bool:
    return isinstance(value, int) and 0 <= value < 2**53


def _is_face(face: object) -> bool:
    return (
        isinstance(face, Mapping)
        and isinstance(face.get("outcome"), str)
        and _is_list(face.get("box"), _is_number, 4)
        and isinstance(face.get("asked", ""), str)
        and isinstance(face.get("identity") or "", str)
    )


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and math.isfinite(value)


def _is_list(value: object, fits: Callable[[object], bool], length: int | None = None) -> bool:
    return isinstance(value, list) and length in (None, len(value)) and all(map(fits, value))


_PARTS: Mapping[str, Callable[[Any], bool]] = {
    "counts": lambda counts: isinstance(counts, dict) and all(map(_is_count, counts.values())),
    "faces": lambda faces: _is_list(faces, _is_face),
    "frames": _is_count,
    "held": lambda held: isinstance(held, bool),
    "size": lambda size: _is_list(size, _is_count, 2),
    "told": lambda told: _is_list(told, lambda each: isinstance(each, str)),
}
