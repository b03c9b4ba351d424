"""Relative paths that others have written down: in a ledger, a list of hashes, a sealed file."""

from __future__ import annotations

import os

SCRATCH = ".veilkit"  # where files of a release are written before they get their names
_LONGEST_NAME, _LONGEST_PATH = 255, 4095  # bytes, on all usual file systems


def path_fault(path: str) -> str | None:
    """Why `path` may not be joined to a folder; None where it is relative, in its simplest form, and stays below.

    >>> [path_fault(path) is None for path in ("a/b.png", "../x.png", "/x.png", "a//b.png", "")]
    [True, False, False, False, False]
    """
    try:
        data = os.fsencode(path)
    except UnicodeEncodeError:
        data = b""
    parts = data.split(b"/")
    if any(part in (b"", b".", b"..") or len(part) > _LONGEST_NAME for part in parts) or b"\0" in data:
        return "leads out of the folder, or is none"
    if len(data) > _LONGEST_PATH:
        return f"is too long: {len(data)} bytes, at most {_LONGEST_PATH}"
    return None
