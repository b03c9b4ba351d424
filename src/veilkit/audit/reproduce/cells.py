"""Cells: each is computed once, kept as one JSON file, and found again by the next run."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from veilkit.errors import DataError
from veilkit.pipeline.writing import write_atomically
from veilkit.progress import Progress

Cell = Mapping[str, Any]


class Cells:
    """The results of one study in `folder`/cells.

    settings: what the study depends on, as JSON values; a cell that was computed under others is refused, so that no
    table mixes two studies.
    """

    def __init__(self, folder: Path, settings: Mapping[str, Any], progress: Progress) -> None:
        self._folder, self._progress = folder / "cells", progress
        self._settings = json.loads(json.dumps(settings))
        self._folder.mkdir(parents=True, exist_ok=True)

    def get(self, name: str, compute: Callable[[], Cell]) -> dict[str, Any]:
        """The cell `name`, computed if it is not there yet. Numbers only, or what JSON holds."""
        file = self._folder / f"{name.replace('/', '.')}.json"
        if file.exists():
            held: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))
            if held["settings"] != self._settings:
                changed = sorted(
                    key
                    for key in {*held["settings"], *self._settings}
                    if held["settings"].get(key) != self._settings.get(key)
                )
                raise DataError(
                    f"{file} belongs to another study ({', '.join(changed)} differ): give this one its own folder"
                )
        else:
            held = {"cell": name, "settings": self._settings, "result": dict(compute())}
            write_atomically(file, (json.dumps(held, indent=2) + "\n").encode(), self._folder)
        self._progress.advance(1, name)
        result: dict[str, Any] = held["result"]
        return result
