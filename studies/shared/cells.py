"""Cells of a study: each is computed once, kept as one JSON file, and found again by the next run."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from veilkit.audit.cells.store import CellFiles, as_json
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
        refuse_others(self._files.file(name), held["settings"], self._settings)
        self._progress.advance(1, name)
        result: dict[str, Any] = held["result"]
        return result


def refuse_others(file: Path, held: Mapping[str, Any], settings: Mapping[str, Any]) -> None:
    """Raise DataError where the settings of a cell that is there are not those of this study, and say which."""
    if held != settings:
        changed = sorted(key for key in {*held, *settings} if held.get(key) != settings.get(key))
        raise DataError(
            f"{file} belongs to another study ({', '.join(changed)} differ): give this one its own folder"
        )
