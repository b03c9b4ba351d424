"""Cells: each is computed once, kept as one JSON file that is whole or absent, and found again by the next run.

An audit's cells (one for each attack and kind of measurement) are kept by this, and those of the studies.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from veilkit.audit.private_files import private_folder, write_private
from veilkit.errors import DestinationError


class CellFiles:
    """JSON objects by name in one folder. A file that was damaged counts as absent."""

    def __init__(self, folder: Path, prefix: str = "") -> None:
        """prefix: what the names of the files begin with, where several audits share a folder."""
        self.folder, self.prefix = folder, prefix

    def open(self) -> CellFiles:
        """Make the folder, and remove what a killed run left half written."""
        try:
            private_folder(self.folder)  # cells name the hashes of originals
            for draft in self.folder.glob("*.part"):
                if not _alive(draft.stem):
                    draft.unlink(missing_ok=True)
        except OSError as error:
            raise DestinationError(f"cells cannot be kept in {self.folder}: {error.strerror}") from None
        return self

    def file(self, name: str) -> Path:
        """Where a cell is kept."""
        return self.folder / f"{self.prefix}{name.replace('/', '.')}.json"

    def read(self, name: str) -> dict[str, Any] | None:
        """A cell, or None where there is none that can be read."""
        with suppress(OSError, ValueError):
            held = json.loads(self.file(name).read_text(encoding="utf-8"))
            if isinstance(held, dict):
                return held
        return None

    def write(self, name: str, held: Mapping[str, Any]) -> None:
        """Keep a cell, all of it or nothing. Numbers only, or what JSON holds."""
        text = json.dumps(held, indent=2) + "\n"
        write_private(self.file(name), text.encode())


def as_json(values: Any) -> Any:
    """Values as they come back from a JSON file: two that are equal there are equal here."""
    return json.loads(json.dumps(values))


def _alive(process: str) -> bool:
    """Whether the process that writes a draft, which its name says, still runs."""
    try:
        os.kill(int(process), 0)
    except (ValueError, ProcessLookupError):
        return False
    except OSError:
        return True
    return True
