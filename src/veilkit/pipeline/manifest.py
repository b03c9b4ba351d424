"""What a release says of itself: manifest.json, and the hashes of its files in SHA256SUMS.

`sha256sum -c SHA256SUMS` checks a release without veilkit. Neither file holds a path, a time or a count of what was
refused: two releases of the same pictures under the same key are the same, byte for byte.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, ValidationError

from veilkit.errors import DataError

MANIFEST = "manifest.json"
SUMS = "SHA256SUMS"
_ESCAPED = {b"n": b"\n", b"r": b"\r", b"\\": b"\\"}


class Manifest(BaseModel):
    """The public facts of a release. `seed` is set, and `key_commitment` is not, where anyone can reproduce it.

    sealed_recipients: how many keys can open the originals, which lie apart; None where they are not sealed. Whose
    keys is not told: they would link the releases of one owner.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    format: Literal[1] = 1
    veilkit: str
    method: str
    config: dict[str, Any]
    expert_sha256: str | None = None
    key_commitment: str | None = None
    seed: int | None = None
    reproducible_by: Literal["the key's holder", "anyone"]
    names: Literal["pseudonyms", "kept"]
    image_format: Literal["png", "jpeg"]
    sealed_recipients: int | None = None
    files: int
    sums_sha256: str

    def text(self) -> str:
        """The manifest as it stands in the release."""
        return json.dumps(self.model_dump(), indent=2) + "\n"


def read_manifest(release: Path) -> Manifest | None:
    """The manifest of a release, or None where there is none (another tool made the folder)."""
    file = release / MANIFEST
    if not file.is_file():
        return None
    try:
        return Manifest.model_validate_json(file.read_bytes())
    except ValidationError as error:
        raise DataError(
            f"{file} is not a manifest that this version reads ({error.error_count()} wrong fields): "
            "take the folder's own, or move it away to treat the folder as any other"
        ) from None


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
    """The (path, SHA-256) pairs of a file in the format of sha256sum."""
    with file.open("rb") as lines:
        for line in lines:
            escaped = line.startswith(b"\\")
            digest, _, name = line.rstrip(b"\n").removeprefix(b"\\").partition(b"  ")
            if escaped:
                name = re.sub(rb"\\(.)", lambda found: _ESCAPED[found[1]], name)
            yield os.fsdecode(name), digest.decode()


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
