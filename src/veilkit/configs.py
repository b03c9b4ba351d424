"""Frozen configurations: presets by name, single fields by `key=value`, checked against their types."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import math
import reprlib
import types
from collections.abc import Mapping, Sequence
from enum import Enum
from typing import Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

from veilkit.errors import ConfigError
from veilkit.lookup import unknown_name

C = TypeVar("C")
_LARGEST = 2**63 - 1  # of an integer; torch knows none beyond
_BOOLS = {"true": True, "yes": True, "1": True, "false": False, "no": False, "0": False}


def parse_settings(settings: Sequence[str]) -> dict[str, str]:
    """Split "key=value" words.

    >>> parse_settings(["sigma=0.5"])
    {'sigma': '0.5'}
    """
    parsed = {}
    for setting in settings:
        key, equals, value = setting.partition("=")
        if not equals or not key:
            raise ConfigError(f"a setting must look like key=value, but got {setting!r}")
        parsed[key.strip()] = value.strip()
    return parsed


def with_settings(config: C, settings: Mapping[str, object]) -> C:
    """`config` with some fields replaced; text is read as the field's type.

    A field that is a configuration itself takes a mapping, or single fields by a dot: `augment.erase=0.3`.
    """
    return _changed(config, settings, strict=False)


def from_json(config: C, values: object) -> C:
    """`config` with the fields that a file holds, in JSON's types: text is not read as a number. What lacks stays."""
    if not isinstance(values, Mapping):
        raise ConfigError(f"expected settings by name, but got {_shown(values)}")
    return _changed(config, values, strict=True)


def read_facts(values: object, kinds: Mapping[str, Any]) -> dict[str, Any]:
    """The values that a file must hold beside a configuration, each of the type in `kinds`; others are ignored."""
    if not isinstance(values, Mapping):
        raise ConfigError(f"expected {', '.join(kinds)}, but got {_shown(values)}")
    if missing := [name for name in kinds if name not in values]:
        raise ConfigError(f"{', '.join(missing)} is missing")
    return {name: _read(name, values[name], kind, strict=True) for name, kind in kinds.items()}


def _changed(config: C, settings: Mapping[str, object], *, strict: bool) -> C:
    hints = get_type_hints(type(config))
    names = {field.name: None for field in dataclasses.fields(config)}  # type: ignore[arg-type]
    changes: dict[str, Any] = {}
    parts: dict[str, dict[str, object]] = {}  # of inner configurations, each checked when all of its fields are known
    for key, value in settings.items():
        name, dot, rest = key.partition(".")
        if name not in names:
            raise ConfigError(unknown_name("setting", name[:80], names))
        inner = {rest: value} if dot else value if isinstance(value, Mapping) else None
        if dataclasses.is_dataclass(getattr(config, name)):
            if inner is None:
                raise ConfigError(f"{name} has parts: set one of them, like {name}.{_first_field(config, name)}=...")
            parts.setdefault(name, {}).update(inner)
        elif dot:
            raise ConfigError(f"{name} has no parts, but got {key[:80]}")
        else:
            changes[name] = _read(key, value, hints[name], strict=strict)
    changes |= {name: _changed(getattr(config, name), inner, strict=strict) for name, inner in parts.items()}
    return dataclasses.replace(config, **changes)  # type: ignore[type-var]


def as_dict(config: object) -> dict[str, Any]:
    """The fields of a configuration as plain JSON values."""
    values: dict[str, Any] = json.loads(json.dumps(dataclasses.asdict(config)))  # type: ignore[call-overload]
    return values


def digest(config: object) -> str:
    """A hash that changes with any field."""
    return hashlib.sha256(json.dumps(as_dict(config), sort_keys=True).encode()).hexdigest()


def differing(one: Mapping[str, Any], other: Mapping[str, Any]) -> dict[str, tuple[Any, Any]]:
    """Settings in which two configurations differ, by their dotted names; None where one has no such setting.

    >>> differing({"sigma": 4, "augment": {"erase": 0.1}}, {"sigma": 8, "augment": {"erase": 0.1}})
    {'sigma': (4, 8)}
    """
    found: dict[str, tuple[Any, Any]] = {}
    for name in (*one, *(name for name in other if name not in one)):
        first, second = one.get(name), other.get(name)
        if isinstance(first, Mapping) and isinstance(second, Mapping):
            found |= {f"{name}.{inner}": pair for inner, pair in differing(first, second).items()}
        elif first != second:
            found[name] = (first, second)
    return found


def check_lengths(name: str, values: Sequence[int], most: int, largest: int) -> None:
    """Raise unless these are 1 to `most` sizes of 1 to `largest`."""
    if not 1 <= len(values) <= most or not all(1 <= value <= largest for value in values):
        raise ConfigError(f"{name} must be 1 to {most} sizes of 1 to {largest}, but got {_shown(values)}")


def check_range(name: str, value: float, low: float, high: float) -> None:
    """Raise unless low <= value <= high (NaN fails)."""
    if not low <= value <= high:
        shown = f"{value:g}" if abs(value) < 1e300 or not math.isfinite(value) else "a larger number"
        raise ConfigError(f"{name} must be between {low:g} and {high:g}, but got {shown}")


def check_ranges(config: object, bounds: Mapping[str, tuple[float, float]]) -> None:
    """Raise unless fields lie between their lowest and highest value; a key may name several, and None is left alone.

    >>> check_ranges(types.SimpleNamespace(steps=5, rate=2.0), {"steps": (1, 10), "rate": (0, 1)})
    Traceback (most recent call last):
    veilkit.errors.ConfigError: rate must be between 0 and 1, but got 2
    """
    for names, (low, high) in bounds.items():
        for name in names.split():
            value = getattr(config, name)
            if value is not None:
                check_range(name, value, low, high)


def _read(key: str, value: object, hint: Any, *, strict: bool) -> object:
    """`value` as the type that `hint` names. strict: only JSON's own type for it will do."""
    origin, args = get_origin(hint), get_args(hint)
    if origin is dict:
        return _scalar(key, value, dict, strict=strict)
    if origin is Literal:
        if value not in args:
            raise ConfigError(f"{key} must be one of {', '.join(map(str, args))}, but got {_shown(value)}")
        return value
    if origin in (Union, types.UnionType):
        if value is None or (not strict and isinstance(value, str) and value.lower() == "none"):
            if type(None) in args:
                return None
            raise ConfigError(f"{key} cannot be none")
        return _read(key, value, next(arg for arg in args if arg is not type(None)), strict=strict)
    if origin is tuple:
        parts = value.split(",") if isinstance(value, str) and not strict else value
        fixed = args[-1] is not Ellipsis
        wrong = isinstance(parts, str) or not isinstance(parts, Sequence) or (fixed and len(parts) != len(args))
        if wrong or not isinstance(parts, Sequence):
            count = len(args) if fixed else "some"
            raise ConfigError(f"{key} must be {count} values separated by commas, but got {_shown(value)}")
        kinds = args if fixed else (args[0],) * len(parts)
        return tuple(_read(key, part, kind, strict=strict) for part, kind in zip(parts, kinds, strict=True))
    if dataclasses.is_dataclass(hint):
        raise ConfigError(f"{key} must be none or settings by name, but got {_shown(value)}")
    return _scalar(key, value, hint, strict=strict)


def _scalar(key: str, value: object, kind: Any, *, strict: bool) -> object:
    if issubclass(kind, Enum):
        if value not in (known := [member.value for member in kind]):
            raise ConfigError(f"{key} must be one of {', '.join(map(str, known))}, but got {_shown(value)}")
        return kind(value)
    failure = ConfigError(f"{key} must be of type {kind.__name__}, but got {_shown(value)}")
    if kind is dict:
        if isinstance(value, dict):
            return value
        raise failure
    if kind is bool:
        if isinstance(value, bool):
            return value
        if isinstance(value, str) and value.lower() in _BOOLS and not strict:
            return _BOOLS[value.lower()]
        raise failure
    if kind is str:
        if isinstance(value, str) and "\0" not in value:  # which no name or path can hold
            return value
        raise failure
    if isinstance(value, bool) or not isinstance(value, (int, float) if strict else (str, int, float)):
        raise failure
    if kind is int and isinstance(value, float) and not value.is_integer():
        raise failure
    try:
        number = kind(value)
    except (ValueError, OverflowError):
        raise failure from None
    if kind is int and abs(number) > _LARGEST:
        raise failure
    return number


def _first_field(config: object, name: str) -> str:
    return dataclasses.fields(getattr(config, name))[0].name


def _shown(value: object) -> str:
    """A value in a message, shortened however long or deep it is."""
    return reprlib.repr(value)
