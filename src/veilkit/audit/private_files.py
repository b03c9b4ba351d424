"""Folders and files of an audit that only their owner may read: they tell of the originals."""

from __future__ import annotations

import errno
import os
from contextlib import suppress
from pathlib import Path

from veilkit.errors import DestinationError

FOLDER_MODE, FILE_MODE = 0o700, 0o600
MADE_BY_AUDITS = frozenset(
    {"audit.json", "report.html", "audit.md", "sign.html", "cache", "cells", "matrix.json", "audits", "releases"}
)
"""What lies in an audit's folder; one that holds anything else may be shared, and keeps its mode."""


def private_folder(folder: Path) -> None:
    """Make a folder for its owner alone, whatever the umask; one that is there is tightened. Raises OSError."""
    folder.mkdir(parents=True, exist_ok=True, mode=FOLDER_MODE)
    if folder.stat().st_mode & 0o777 != FOLDER_MODE:
        folder.chmod(FOLDER_MODE)


def private_audit_folder(folder: Path) -> None:
    """The folder that an audit writes to. Somebody's own folder, with other files in it, keeps its mode."""
    held = [entry.name for entry in folder.iterdir() if entry.suffix != ".part"] if folder.exists() else []
    if MADE_BY_AUDITS.issuperset(held):
        private_folder(folder)


def private_file(file: Path) -> None:
    """Make a file for its owner alone unless it is there; then it is tightened. Raises OSError."""
    with suppress(FileExistsError):
        os.close(os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, FILE_MODE))
    if file.stat().st_mode & 0o777 != FILE_MODE:
        file.chmod(FILE_MODE)


def write_private(file: Path, data: bytes) -> None:
    """Write a file for its owner alone: all of it or nothing is seen, and at no time by others."""
    draft = file.with_name(f"{os.getpid()}.part")
    try:
        with suppress(FileNotFoundError):
            draft.unlink()  # of a killed process of this number; its mode may be another
        with os.fdopen(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, FILE_MODE), "wb") as out:
            out.write(data)
        draft.replace(file)
    except OSError as error:
        with suppress(OSError):
            draft.unlink()
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            raise DestinationError("the disk is full: free some space and run the same command to go on") from None
        raise DestinationError(f"the destination cannot be written: {error.strerror}") from None
