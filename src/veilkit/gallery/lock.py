"""One process at a time: a lock that ends with the process, however that ends."""

from __future__ import annotations

import fcntl
import os
from pathlib import Path

from veilkit.errors import DestinationError


class Lock:
    """An exclusive lock on a file, taken on creation."""

    def __init__(self, file: Path) -> None:
        try:
            self._held = os.open(file, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except OSError as error:
            raise DestinationError(f"the gallery {file.parent} cannot be written: {error.strerror}") from None
        try:
            fcntl.flock(self._held, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(self._held)
            raise DestinationError(
                "another process has this gallery open: wait for it, or use a Milvus server for many at once"
            ) from None

    def close(self) -> None:
        """Give it back."""
        os.close(self._held)
