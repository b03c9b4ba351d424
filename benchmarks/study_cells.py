"""The cells of long studies: those of a working folder, and those that are published with the results.

Published cells, benchmarks/results/NAME/cells, are where a study goes on from on another machine. They hold numbers
only, never pictures or names.
"""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import claims


def read(work: Path, wanted: Mapping[str, Any]) -> dict[str, Any]:
    """The results that are there; those of another configuration than `wanted` are refused."""
    expected, found = _as_json(wanted), {}
    for file in sorted((work / "cells").glob("*.json")):
        held = json.loads(file.read_text(encoding="utf-8"))
        if not _fits(held, expected):
            sys.exit(f"{file} was computed under other settings; name another folder with --work")
        found[held["cell"]] = held["result"]
    return found


def published(name: str) -> dict[str, Any]:
    """The results that are published, whatever their settings."""
    held = (json.loads(file.read_text(encoding="utf-8")) for file in sorted(_published(name).glob("*.json")))
    return {each["cell"]: each["result"] for each in held}


def restore(work: Path, name: str, wanted: Mapping[str, Any]) -> None:
    """Take over published cells of this configuration that the working folder lacks."""
    expected = _as_json(wanted)
    (work / "cells").mkdir(parents=True, exist_ok=True)
    for file in sorted(_published(name).glob("*.json")):
        target = work / "cells" / file.name
        if not target.exists() and _fits(json.loads(file.read_text(encoding="utf-8")), expected):
            shutil.copyfile(file, target)


def keep(work: Path, name: str) -> None:
    """Publish the cells of the working folder."""
    _published(name).mkdir(parents=True, exist_ok=True)
    for file in sorted((work / "cells").glob("*.json")):
        shutil.copyfile(file, _published(name) / file.name)


def _published(name: str) -> Path:
    return claims.RESULTS / name / "cells"


def _as_json(wanted: Mapping[str, Any]) -> dict[str, Any]:
    expected: dict[str, Any] = json.loads(json.dumps(wanted))
    return expected


def _fits(held: Mapping[str, Any], expected: Mapping[str, Any]) -> bool:
    return all(held["settings"][name] == value for name, value in expected.items() if name in held["settings"])
