"""One run at a time writes a release, whatever its key: a lock in the release's scratch folder, gone when it is done.

A file, since network file systems lock no folders.
"""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from veilkit.errors import DestinationError

LOCK = "lock"  # an empty file
_TRIES = 100


@contextmanager
def release_lock(scratch: Path) -> Iterator[None]:
    """Hold the lock, and make the scratch folder for it; it goes with the lock unless unfinished files are in it."""
    held = _taken(scratch)
    try:
        yield
    finally:
        with suppress(OSError):
            if _is_at(held, scratch / LOCK):  # not one that another run has made in the meantime
                (scratch / LOCK).unlink()
                scratch.rmdir()
        os.close(held)


def clear_scratch(scratch: Path) -> None:
    """Remove what a run has left in its scratch folder; the lock stays."""
    for leftover in scratch.iterdir():
        if leftover.name != LOCK:
            leftover.unlink(missing_ok=True)


def _taken(scratch: Path) -> int:
    """The descriptor of the locked file. A run that ends takes file and folder away: then it is made once more."""
    try:
        for _ in range(_TRIES):
            with suppress(FileNotFoundError):
                scratch.mkdir(parents=True, exist_ok=True)
                if scratch.is_symlink():
                    raise DestinationError(f"{scratch} is a link, where unfinished files would go: move it away")
                held = os.open(scratch / LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
                _lock(held)
                if _is_at(held, scratch / LOCK):
                    return held
                os.close(held)
    except OSError as error:
        raise DestinationError(f"{scratch.parent} cannot be written: {error.strerror}") from None
    raise DestinationError(f"other runs keep beginning and ending in {scratch.parent}: stop them first")


def _lock(descriptor: int) -> None:
    """Lock the open file, or close it."""
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(descriptor)
        raise DestinationError("another run is writing this release: wait for it, or stop it first") from None
    except OSError:
        os.close(descriptor)
        raise


def _is_at(descriptor: int, file: Path) -> bool:
    """Whether the open file is the one of that name."""
    try:
        return os.path.samestat(os.fstat(descriptor), file.lstat())
    except FileNotFoundError:
        return False
