"""A new file with a secret in it."""

from __future__ import annotations

import os
import secrets
from pathlib import Path

from veilkit.errors import DestinationError


def write_new_secret(file: Path, text: str) -> None:
    """Write a file that only its owner may read: whole or not at all, and never over another (FileExistsError)."""
    draft = file.with_name(f".{file.name}.{secrets.token_hex(8)}")
    try:
        file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        with os.fdopen(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="ascii") as out:
            out.write(text)
            out.flush()
            os.fsync(out.fileno())
        try:
            file.hardlink_to(draft)
        finally:
            draft.unlink()
    except FileExistsError:
        raise
    except OSError as error:
        raise DestinationError(f"the key file {file} cannot be written: {error.strerror}") from None
