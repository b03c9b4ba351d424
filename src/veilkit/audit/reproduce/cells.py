"""Cells of a study: each is computed once, kept as one JSON file, and found again by the next run."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from veilkit.audit.cells import CellFiles, as_json
from veilkit.errors import DataError
from veilkit.progress import Progress

Cell = Mapping[str, Any]


class Cells:
    """The results of one study in `folder`/cells.

    settings: what the study depends on, as JSON values; a cell that was computed under others is refused, so that no
    table mixes two studies.
    """

    def __init__(self, folder: Path, settings: Mapping[str, Any], progress: Progress) -> None:
        self._files, self._progress = CellFiles(folder / "cells").open(), progress
        self._settings = as_json(settings)

    def get(self, name: str, compute: Callable[[], Cell]) -> dict[str, Any]:
        """The cell `name`, computed if it is not there yet. Numbers only, or what JSON holds."""
        held = self._files.read(name)
        if held is None:
            held = {"cell": name, "settings": self._settings, "result": dict(compute())}
            self._files.write(name, held)
        elif held["settings"] != self._settings:
            changed = sorted(
                key
                for key in {*held["settings"], *self._settings}
                if held["settings"].get(key) != self._settings.get(key)
            )
            raise DataError(
                f"{self._files.file(name)} belongs to another study ({', '.join(changed)} differ): "
                "give this one its own folder"
            )
        self._progress.advance(1, name)
        result: dict[str, Any] = held["result"]
        return result
