"""A spec as the TOML file that `read_spec` reads: what a program has planned can be run again by anybody."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from veilkit.audit.inputs.spec import AuditSpec
from veilkit.errors import ConfigError

_TABLES = ("datasets", "releases", "methods", "experts")


def spec_text(spec: AuditSpec, root: Path) -> str:
    """TOML without what is as by default; paths below `root`, where the file is to lie, are written from there."""
    values = {name: getattr(spec, name) for name in AuditSpec.model_fields if name not in _TABLES}
    lines = [f"{name} = {_value(value, root)}" for name, value in values.items() if value is not None]
    for table in _TABLES:
        for part in getattr(spec, table):
            given = {name: getattr(part, name) for name, field in type(part).model_fields.items()
                     if field.is_required() or getattr(part, name) not in (None, {}, field.default)}  # fmt: skip
            lines += ["", f"[[{table}]]", *(f"{name} = {_value(value, root)}" for name, value in given.items())]
    return "\n".join(lines) + "\n"


def _value(value: Any, root: Path) -> str:
    """A value in TOML, whose strings, numbers and truths are written as JSON's are."""
    if isinstance(value, Path):
        return json.dumps(str(value.relative_to(root) if value.is_relative_to(root) else value), ensure_ascii=False)
    if isinstance(value, Mapping):
        return (
            "{ " + ", ".join(f"{json.dumps(str(key))} = {_value(each, root)}" for key, each in value.items()) + " }"
        )
    if isinstance(value, list | tuple):
        return "[" + ", ".join(_value(each, root) for each in value) + "]"
    if isinstance(value, str | int | float):
        return json.dumps(value, ensure_ascii=False, allow_nan=False)
    raise ConfigError(f"a spec holds text, numbers, lists and tables, but got {type(value).__name__}")
