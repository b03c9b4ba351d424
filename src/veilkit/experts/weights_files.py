"""Where weights that others publish lie, and the digest of a file."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

from veilkit.errors import CheckpointError

VARIABLE, DATA = "VEILKIT_WEIGHTS", "VEILKIT_DATA"


def file_sha256(path: Path) -> str:
    """64 hexadecimal digits; the file is never held in memory as a whole."""
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        raise CheckpointError(f"{path}: the model file cannot be read: {error.strerror}") from None


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
