"""JSON from files of others: an object of bounded size and depth, finite numbers, no name twice in an object."""

from __future__ import annotations

import json
import math
from typing import Any, NoReturn

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
