"""Weights of others that judge and are not shipped: a folder that the user names."""

from __future__ import annotations

import os
from pathlib import Path

from veilkit.errors import CheckpointError

VARIABLE, DATA = "VEILKIT_WEIGHTS", "VEILKIT_DATA"


def weights_folder() -> Path | None:
    """$VEILKIT_WEIGHTS, or the folder `weights` beside $VEILKIT_DATA; None where neither is set."""
    if own := os.environ.get(VARIABLE):
        return Path(own)
    data = os.environ.get(DATA)
    return Path(data).resolve().parent / "weights" if data else None


def weights_file(name: str) -> Path:
    """The file `name` in that folder."""
    folder = weights_folder()
    if folder is None or not (folder / name).is_file():
        where = f"it is not in {folder}" if folder else f"{VARIABLE} is not set"
        raise CheckpointError(f"this judge needs {name}, but {where}; point {VARIABLE} at the folder that holds it")
    return folder / name
