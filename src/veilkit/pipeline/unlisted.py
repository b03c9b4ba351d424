"""Files in a release folder that do not belong to the release: never given away with it, and never touched."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path

from veilkit.errors import DestinationError
from veilkit.pipeline.paths import SCRATCH

_NAMED = 3  # files that an error names


def refuse_unlisted(release: Path, belongs: Callable[[str], bool], *, finished: bool) -> None:
    """Raise where the folder holds anything but regular files that belong to the release, and their folders.

    finished: no picture is still to come, so that no folder may be empty either.
    """
    named: list[str] = []
    count = 0
    for path, is_file in _contents(release):
        if not (belongs(path) if is_file else path.endswith("/") and not finished):
            count += 1
            if len(named) < _NAMED:
                named.append(repr(path))
    if not count:
        return
    more = f" and {count - len(named)} more" if count > len(named) else ""
    raise DestinationError(
        f"{release} holds files that are not of this release: {', '.join(named)}{more}. Move them away and run the "
        "same command again, or choose a new or empty folder"
    )


def _contents(release: Path) -> Iterator[tuple[str, bool]]:
    """Everything below a release but its scratch folder: relative path, and whether it is a regular file.

    Links are not followed. Folders count only where they are empty.
    """
    waiting = [""]
    while waiting:
        prefix = waiting.pop()
        with os.scandir(release / prefix) as entries:
            found = list(entries)
        if prefix and not found:
            yield prefix, False
        for entry in found:
            path = prefix + entry.name
            if entry.is_dir(follow_symlinks=False):
                if path != SCRATCH:
                    waiting.append(f"{path}/")
            else:
                yield path, entry.is_file(follow_symlinks=False)
