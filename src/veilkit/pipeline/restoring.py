"""Places for restored originals. Paths come from sealed files, which anybody may have made: none may lead astray."""

from __future__ import annotations

import os
import stat
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from veilkit.errors import SealError
from veilkit.media.reading import sha256


def check_place(folder: Path, path: str, digest: str, *, scratch: str) -> None:
    """Raise unless `path` below `folder` is free, or holds just the file of SHA-256 `digest`.

    A link on the way is refused, as it may lead out of the folder. scratch: the one name that is taken.
    """
    *above, _ = parts = path.split("/")
    if parts[0] == scratch:
        raise SealError(f"its path begins with {scratch}, which is needed for unfinished files")
    for depth in range(1, len(above) + 1):
        mode = _mode(folder.joinpath(*above[:depth]))
        if mode is not None and not stat.S_ISDIR(mode):
            raise SealError("a file or a link is where its folder would be: choose an empty folder")
    if _mode(folder / path) is not None and not is_restored(folder / path, digest):
        raise SealError("another file is already in its place: choose an empty folder, or move that file away")


def check_together(paths: Sequence[str]) -> dict[str, str]:
    """Paths that cannot stand beside the others, each with the reason: named twice, or a folder of another."""
    counts = Counter(paths)
    folders = {path[:end] for path in counts for end in range(len(path)) if path[end] == "/"}
    clashing = {path: "two sealed files name one original" for path, count in counts.items() if count > 1}
    return clashing | dict.fromkeys(counts.keys() & folders, "its path is that of another original's folder")


def is_restored(file: Path, digest: str) -> bool:
    """Whether a regular file of SHA-256 `digest` is there, and no link."""
    mode = _mode(file)
    try:
        return mode is not None and stat.S_ISREG(mode) and sha256(file.read_bytes()) == digest
    except OSError:
        return False


def _mode(file: Path) -> int | None:
    """What is there, links not followed; None for nothing."""
    try:
        return os.lstat(file).st_mode
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise SealError(f"its place cannot be looked at: {error.strerror}") from None
