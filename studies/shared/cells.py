"""The cells of a study: each is computed once, kept as one JSON file, and found again by the next run."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from veilkit.audit.cells.store import CellFiles, as_json
from veilkit.errors import DataError
from veilkit.progress import Progress

Cell = Mapping[str, Any]


class CellStore:
    """The cells of one run in `folder`/cells.

    settings: what the study depends on, as JSON values; a cell that was computed under others is refused, so that no
    table mixes two studies.
    """

    def __init__(self, folder: Path, settings: Mapping[str, Any], progress: Progress) -> None:
        self._files, self._progress = CellFiles(folder / "cells").open(), progress
        self._settings = as_json(settings)
        self._known: dict[str, dict[str, Any]] = {}

    def get(self, name: str, compute: Callable[[], Cell]) -> dict[str, Any]:
        """The cell `name`, computed if it is not there yet. Numbers only, or what JSON holds."""
        if name not in self._known:
            held = self._files.read(name)
            if held is None:
                held = {"cell": name, "settings": self._settings, "result": dict(compute())}
                self._files.write(name, held)
            refuse_others(self._files.file(name), held["settings"], self._settings)
            self._progress.advance(1, name)
            self._known[name] = held["result"]
        return self._known[name]


def read_cells(folder: Path, wanted: Mapping[str, Any]) -> dict[str, Any]:
    """The results in `folder`/cells by their cells' names. Raises where one has other values of `wanted`."""
    expected, found = as_json(wanted), {}
    for file in sorted((folder / "cells").glob("*.json")):
        held = CellFiles(file.parent).read(file.stem)
        if held is not None:
            refuse_others(file, held["settings"], {**held["settings"], **_shared(expected, held["settings"])})
            found[held["cell"]] = held["result"]
    return found


def read_settings(folder: Path) -> list[dict[str, Any]]:
    """The distinct settings of the cells in `folder`/cells."""
    found: list[dict[str, Any]] = []
    for file in sorted((folder / "cells").glob("*.json")):
        held = CellFiles(file.parent).read(file.stem)
        if held is not None and held["settings"] not in found:
            found.append(held["settings"])
    return found


def refuse_others(file: Path, held: Mapping[str, Any], settings: Mapping[str, Any]) -> None:
    """Raise DataError where the settings of a cell that is there are not those of this study, and say which."""
    if held != settings:
        changed = sorted(key for key in {*held, *settings} if held.get(key) != settings.get(key))
        raise DataError(
            f"{file} belongs to another study ({', '.join(changed)} differ): give this one its own folder"
        )


def _shared(wanted: Mapping[str, Any], held: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in wanted.items() if key in held}
