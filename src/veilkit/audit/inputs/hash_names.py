"""Names that are hashes of originals: whoever holds a picture, or guesses its name, finds it in the release."""

from __future__ import annotations

import base64
import hashlib
import os
import re
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path

from veilkit.errors import RefusedImage
from veilkit.media.reading import Limits, read_bytes

HASHES = ("md5", "sha1", "sha224", "sha256", "sha384", "sha512", "blake2b", "blake2s", "sha3_256")
_SHORTEST = 8  # characters of a name that are compared: no two of millions agree in so many by chance
_LIKE_A_HASH = re.compile(rf"[0-9A-Za-z_=-]{{{_SHORTEST},}}")


def named_by_hash(root: Path, originals: Sequence[str], protected: Sequence[str], limits: Limits) -> dict[str, str]:
    """Originals by path whose hash, or the beginning of it, is the name of a protected picture, with that picture.

    Hashes of the file, of its path, its name and its name without suffix, without any key, in hexadecimal, base32 and
    base64. Files are read only where names of the release look like hashes.
    """
    names = {_stem(path): path for path in protected}
    hashed = {stem for stem in names if _LIKE_A_HASH.fullmatch(stem) and any(map(str.isdigit, stem))}
    if not hashed:
        return {}
    heads: dict[str, list[str]] = {}
    for stem in hashed:
        heads.setdefault(stem[:_SHORTEST].lower(), []).append(stem)
    found: dict[str, str] = {}
    for path in originals:
        for text in _hashes(root, path, limits):
            for stem in heads.get(text[:_SHORTEST].lower(), ()):
                if text.lower().startswith(stem.rstrip("=").lower()):
                    found.setdefault(path, names[stem])
    return found


def _hashes(root: Path, path: str, limits: Limits) -> Iterator[str]:
    name = path.rpartition("/")[2]
    values = [os.fsencode(text) for text in dict.fromkeys((path, name, _stem(path)))]
    with suppress(RefusedImage):  # that is reported elsewhere, and its name may still have been hashed
        values.append(read_bytes(root / path, limits))
    for value in values:
        for kind in HASHES:
            digest = hashlib.new(kind, value, usedforsecurity=False).digest()
            yield digest.hex()
            yield base64.b32encode(digest).decode().rstrip("=")
            yield base64.urlsafe_b64encode(digest).decode().rstrip("=")


def _stem(path: str) -> str:
    return os.path.splitext(path)[0].rpartition("/")[2]  # noqa: PTH122 - paths may hold bytes that are not text
