"""Frozen configurations: presets by name, single fields by `key=value`, checked against their types."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import types
from collections.abc import Mapping, Sequence
from enum import Enum
from typing import Any, Literal, TypeVar, Union, get_args, get_origin, get_type_hints

from veilkit.errors import ConfigError
from veilkit.lookup import unknown_name

C = TypeVar("C")
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
    hints = get_type_hints(type(config))
    names = {field.name: None for field in dataclasses.fields(config)}  # type: ignore[arg-type]
    changes: dict[str, Any] = {}
    parts: dict[str, dict[str, object]] = {}  # of inner configurations, each checked when all of its fields are known
    for key, value in settings.items():
        name, dot, rest = key.partition(".")
        if name not in names:
            raise ConfigError(unknown_name("setting", name, names))
        inner = {rest: value} if dot else value if isinstance(value, Mapping) else None
        if dataclasses.is_dataclass(getattr(config, name)) and inner is not None:
            parts.setdefault(name, {}).update(inner)
        elif dot:
            raise ConfigError(f"{name} has no parts, but got {key}")
        else:
            changes[name] = _read(key, value, hints[name])
    changes |= {name: with_settings(getattr(config, name), fields) for name, fields in parts.items()}
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


def check_range(name: str, value: float, low: float, high: float) -> None:
    """Raise unless low <= value <= high (NaN fails)."""
    if not low <= value <= high:
        raise ConfigError(f"{name} must be between {low:g} and {high:g}, but got {value:g}")


def _read(key: str, value: object, hint: Any) -> object:
    """`value` as the type that `hint` names."""
    origin, args = get_origin(hint), get_args(hint)
    if origin is Literal:
        if value not in args:
            raise ConfigError(f"{key} must be one of {', '.join(map(str, args))}, but got {value!r}")
        return value
    if origin in (Union, types.UnionType):
        if value is None or (isinstance(value, str) and value.lower() == "none"):
            if type(None) in args:
                return None
            raise ConfigError(f"{key} cannot be none")
        return _read(key, value, next(arg for arg in args if arg is not type(None)))
    if origin is tuple:
        parts = value.split(",") if isinstance(value, str) else value
        if not isinstance(parts, Sequence) or (args[-1] is not Ellipsis and len(parts) != len(args)):
            raise ConfigError(f"{key} must be {len(args)} values separated by commas, but got {value!r}")
        kinds = (args[0],) * len(parts) if args[-1] is Ellipsis else args
        return tuple(_read(key, part, kind) for part, kind in zip(parts, kinds, strict=True))
    return _scalar(key, value, hint)


def _scalar(key: str, value: object, kind: Any) -> object:
    if issubclass(kind, Enum):
        if value not in (known := [member.value for member in kind]):
            raise ConfigError(f"{key} must be one of {', '.join(map(str, known))}, but got {value!r}")
        return kind(value)
    failure = ConfigError(f"{key} must be of type {kind.__name__}, but got {value!r}")
    if kind is bool:
        if isinstance(value, bool):
            return value
        if isinstance(value, str) and value.lower() in _BOOLS:
            return _BOOLS[value.lower()]
        raise failure
    if kind is str:
        if isinstance(value, str):
            return value
        raise failure
    if isinstance(value, bool) or not isinstance(value, (str, int, float)):
        raise failure
    if kind is int and isinstance(value, float) and not value.is_integer():
        raise failure
    try:
        return kind(value)
    except ValueError:
        raise failure from None
