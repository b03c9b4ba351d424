"""The methods by their names: as a table for people (`veilkit.methods()`), and one under its settings."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from veilkit.display import Table
from veilkit.errors import UsageError
from veilkit.methods import METHODS, Calibrates, Learns, Method
from veilkit.methods.base import WorksUnfitted


def methods() -> Table:
    """All protection methods: what each does, what it needs first, and whether an attack is known to undo it."""
    rows = [
        (
            name,
            "model" if issubclass(method, Learns) and not issubclass(method, WorksUnfitted) else "",
            f"by {method.undone_by}" if method.undone_by else "",
            method.summary,
        )
        for name, method in METHODS.items()
    ]
    return Table("method", ("name", "needs", "undone", "what it does"), rows)


def configured(
    name: str, preset: str | None, settings: Mapping[str, object] | None, model: str | Path | None
) -> Method[Any]:
    """The method of this name under its settings, with what `model` holds where it learns."""
    kind = METHODS[name]
    if model is not None and not issubclass(kind, Learns | Calibrates):
        raise UsageError(f"{name} learns nothing, so it takes no model; leave it out")
    if model is None and not issubclass(kind, Learns):
        return kind.configured(preset, settings)
    if model is None:
        if issubclass(kind, WorksUnfitted) and (unfitted := kind.unfitted(preset, settings)) is not None:
            return unfitted
        raise UsageError(
            f"{name} must learn before it protects: run `veilkit fit {name} DATA --out FILE`, and give FILE as "
            "the model"
        )
    return kind.load(Path(model)).reconfigured(preset, settings)
