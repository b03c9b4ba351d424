"""The SHA-256 of a file, as sha256sum prints it."""

from __future__ import annotations

import hashlib
from pathlib import Path

from veilkit.errors import CheckpointError


def file_sha256(path: Path) -> str:
    """64 hexadecimal digits; the file is never held in memory as a whole."""
    try:
        with path.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        raise CheckpointError(f"{path}: the model file cannot be read: {error.strerror}") from None
