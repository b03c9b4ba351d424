"""What a release lists in its SHA256SUMS, read as a file that anybody may have written."""

from __future__ import annotations

import hashlib
import stat
from pathlib import Path

from veilkit.datasets.soft_labels import SOFT_LABELS
from veilkit.errors import DataError
from veilkit.pipeline.manifest import MANIFEST, SUMS, Manifest, read_sums
from veilkit.pipeline.naming import Names, name_fault


def read_listing(release: Path, names: Names) -> dict[str, str]:
    """The files that a release lists, with their hashes; DataError unless a release of that kind could list them."""
    sums, listed = release / SUMS, dict[str, str]()
    for name, digest in read_sums(sums):
        if name != SOFT_LABELS and (fault := name_fault(name, names)):
            raise DataError(f"{sums} names {_shown(name)}, but that {fault}: fetch the release again")
        if name in listed:
            raise DataError(f"{sums} names {_shown(name)} twice: fetch the release again")
        listed[name] = digest
    return listed


def listed_pictures(release: Path, manifest: Manifest) -> dict[str, str]:
    """The pictures of a finished release, as many as its manifest says, and its soft labels if it has any."""
    sums = release / SUMS
    if _sha256(sums) != manifest.sums_sha256:
        raise DataError(f"{sums} is not the one that {MANIFEST} names: fetch the release again")
    listed = read_listing(release, manifest.names)
    pictures = len(listed.keys() - {SOFT_LABELS})
    if pictures != manifest.files:
        raise DataError(
            f"{sums} lists {pictures} pictures, but {MANIFEST} says that there are {manifest.files}: "
            "one of the two was altered, so fetch the release again"
        )
    return listed


def _sha256(file: Path) -> str:
    """The hash of a regular file, of any length."""
    try:
        if not stat.S_ISREG(file.stat().st_mode):
            raise DataError(f"expected a list of hashes, but {file} is no regular file: fetch the release again")
        with file.open("rb") as opened:
            return hashlib.file_digest(opened, "sha256").hexdigest()
    except OSError as error:
        raise DataError(f"{file} cannot be read: {error.strerror}") from None


def _shown(name: str) -> str:
    """A name in a message: in quotes, and not longer than a line."""
    return repr(name if len(name) <= 80 else name[:77] + "...")
