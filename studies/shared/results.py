"""The published results of a study: headline figures and small tables in one file, `results.json` beside its README.

Values of single pictures, of people and of curves stay in the cells of the working folder.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

FILE = "results.json"
LONGEST = 24  # a longer list holds values of single pictures, people or points


@dataclass(frozen=True, slots=True)
class Results:
    """date: when the newest of the cells was computed. scale: what the figures are of. settings: the options, and the
    fingerprints of models and recognisers; more than one where tables differ in them. cells: results by name, without
    what is long.

    tables: by the name of their place, as they were printed, where the cells of a published run are lost.
    """

    study: str
    date: str
    seed: int
    scale: str
    settings: Sequence[Mapping[str, Any]] = ()
    cells: Mapping[str, Any] = field(default_factory=dict)
    tables: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def load(cls, folder: Path) -> Results | None:
        """The results of a study's folder, or None where there are none."""
        if not (folder / FILE).is_file():
            return None
        held = json.loads((folder / FILE).read_text(encoding="utf-8"))
        tables = {name: "\n".join(lines) for name, lines in held.pop("tables", {}).items()}
        return cls(**held, tables=tables)

    def save(self, folder: Path) -> None:
        """Write the file: a line for each cell."""
        head = {"study": self.study, "date": self.date, "seed": self.seed, "scale": self.scale}
        lines = [f'"{name}": {json.dumps(value)}' for name, value in head.items()]
        lines.append(f'"settings": {json.dumps(self.settings)}')
        cells = ",\n".join(f"{json.dumps(name)}: {json.dumps(self.cells[name])}" for name in sorted(self.cells))
        lines.append(f'"cells": {{\n{cells}\n}}' if cells else '"cells": {}')
        if self.tables:
            shown = {name: text.split("\n") for name, text in self.tables.items()}
            lines.append(f'"tables": {json.dumps(shown, indent=0, ensure_ascii=False)}')
        (folder / FILE).write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")


def summary(value: Any) -> Any:
    """A cell's value without lists of single pictures' values and the like."""
    if isinstance(value, Mapping):
        return {name: summary(each) for name, each in value.items() if not _long(each)}
    return [summary(each) for each in value] if isinstance(value, list) else value


def _long(value: Any) -> bool:
    return isinstance(value, list) and len(value) > LONGEST
