"""What a release says of itself: manifest.json, and the hashes of its files in SHA256SUMS.

`sha256sum -c SHA256SUMS` checks a release without veilkit. Neither file holds a path, a time or a count of what was
refused: two releases of the same pictures under the same key are the same, byte for byte.
"""

from __future__ import annotations

import hashlib
import itertools
import json
import os
import re
import stat
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, NonNegativeInt, StringConstraints, ValidationError

from veilkit.datasets.soft_labels import SOFT_LABELS
from veilkit.errors import DataError, RefusedImage
from veilkit.media.reading import Limits, read_bytes
from veilkit.media.video import Sound
from veilkit.pipeline.names import MANIFEST as MANIFEST
from veilkit.pipeline.names import SUMS as SUMS
from veilkit.pipeline.names import Names, name_fault

_LARGEST = 2**22  # bytes of a manifest, which holds a method's settings
_LONGEST_LINE = 2**14  # bytes: twice the longest path, each byte of it escaped, and a hash
_SUM = re.compile(rb"(?P<escaped>\\?)(?P<digest>[0-9a-f]{64})  (?P<name>[^\n\0]+)\n")
_ESCAPED = {b"n": b"\n", b"r": b"\r", b"\\": b"\\"}
_ESCAPE = re.compile(rb"\\([nr\\])")
_WRONG_ESCAPE = re.compile(rb"\A(?:[^\\]|\\[nr\\])*\\(?![nr\\])")


class Manifest(BaseModel):
    """The public facts of a release. `seed` is set, and `key_commitment` is not, where anyone can reproduce it.

    sealed_recipients: how many keys can open the originals, which lie apart; None where they are not sealed. Whose
    keys is not told: they would link the releases of one owner. sound: what became of that of videos. parts: what
    alone was protected in pictures, by a method that else protects all of a picture.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    format: Literal[1] = 1
    veilkit: str
    method: str
    config: dict[str, Any]
    expert_sha256: str | None = None
    key_commitment: Annotated[str, StringConstraints(pattern="^[0-9a-f]{64}$")] | None = None
    seed: int | None = None
    reproducible_by: Literal["the key's holder", "anyone"]
    names: Names
    image_format: Literal["auto", "png", "jpeg"]
    sound: Sound | None = None
    parts: Literal["people"] | None = None
    sealed_recipients: int | None = None
    files: NonNegativeInt
    sums_sha256: str

    def text(self) -> str:
        """The manifest as it stands in the release."""
        values = self.model_dump()
        for name in ("sound", "parts"):  # a release without stands as it did before there were any
            if values[name] is None:
                del values[name]
        return json.dumps(values, indent=2) + "\n"


def read_manifest(release: Path) -> Manifest | None:
    """The manifest of a release, or None where there is none (another tool made the folder)."""
    file = release / MANIFEST
    try:
        if not file.is_file():
            return None
        return Manifest.model_validate_json(read_bytes(file, Limits(file_bytes=_LARGEST)))
    except ValidationError as error:
        fault = f"{error.error_count()} wrong fields"
    except RefusedImage as refusal:
        fault = refusal.reason
    except OSError as error:
        fault = error.strerror or "it cannot be read"
    raise DataError(
        f"{file} is not a manifest that this version reads ({fault}): "
        "take the folder's own, or move it away to treat the folder as any other"
    )


def write_sums(file: Path, hashes: Iterable[tuple[str, str]]) -> str:
    """Write (path, SHA-256) pairs in the format of sha256sum; returns the hash of the file written."""
    total = hashlib.sha256()
    with file.open("wb") as out:
        for path, digest in hashes:
            line = _line(os.fsencode(path), digest.encode())
            total.update(line)
            out.write(line)
        out.flush()
        os.fsync(out.fileno())
    return total.hexdigest()


def read_sums(file: Path) -> Iterator[tuple[str, str]]:
    """The (path, SHA-256) pairs of a file as `write_sums` writes it; DataError where a line is none of it.

    Nothing is said of the paths: see `listing.read_listing`.
    """
    try:
        with file.open("rb") as lines:
            for number in itertools.count(1):
                line = lines.readline(_LONGEST_LINE)
                if not line:
                    return
                yield _parsed(line, f"{file}, line {number}")
    except OSError as error:
        raise DataError(f"{file} cannot be read: {error.strerror}") from None


def _parsed(line: bytes, place: str) -> tuple[str, str]:
    found = _SUM.fullmatch(line)
    if not found:
        raise DataError(f"{place}: expected 64 hexadecimal digits, two spaces and a name; fetch the release again")
    name = found["name"]
    if found["escaped"]:
        if _WRONG_ESCAPE.search(name):
            raise DataError(f"{place}: a backslash stands before no n, r or backslash; fetch the release again")
        name = _ESCAPE.sub(lambda escape: _ESCAPED[escape[1]], name)
    return os.fsdecode(name), found["digest"].decode("ascii")


def _line(name: bytes, digest: bytes) -> bytes:
    """One line; names with a newline or backslash are escaped as sha256sum does, the line then begins with one."""
    escaped = name.replace(b"\\", b"\\\\").replace(b"\n", b"\\n").replace(b"\r", b"\\r")
    return (b"\\" if escaped != name else b"") + digest + b"  " + escaped + b"\n"


def known_manifest(protected: Path) -> tuple[Manifest | None, tuple[str, ...]]:
    """The manifest of a release, and what is to be told: another tool's file of that name is no manifest of ours."""
    try:
        return read_manifest(protected), ()
    except (DataError, OSError):
        return None, (
            "manifest.json is not one that this version reads: the folder is treated as any other, and what the file "
            "says of keys and names is not used",
        )


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
