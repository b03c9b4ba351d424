"""One process at a time: a lock on a file that ends with the process, however that ends."""

from __future__ import annotations

import fcntl
import os
from pathlib import Path

from veilkit.errors import DestinationError


def take_lock(file: Path, *, busy: str, unwritable: str) -> int:
    """Lock a file, made for its owner where it is not there; closing the descriptor returned gives it back.

    busy: the error where another process has it. unwritable: the error where it cannot be opened, without the reason.
    """
    try:
        held = os.open(file, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    except OSError as error:
        raise DestinationError(f"{unwritable}: {error.strerror}") from None
    try:
        fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(held)
        raise DestinationError(busy) from None
    return held
