"""Secrets that can be guessed: keys and salts made of a folder's name, a common word or a small number."""

from __future__ import annotations

import base64
import hashlib
import hmac
import os
import re
import zlib
from collections.abc import Iterable, Iterator
from pathlib import Path

from veilkit.audit.inputs.hash_names import HASHES
from veilkit.audit.inputs.subject import Subject
from veilkit.audit.result import Alarm
from veilkit.datasets.folder import walk
from veilkit.key import Key
from veilkit.rng import Randomness

_COMMON = (
    "", "key", "secret", "salt", "password", "seed", "veilkit", "test", "changeme", "anonymous", "release", "0", "1",
    "42", "123", "1234", "12345", "123456",
)  # fmt: skip
_SEEDS = 10_000
_KEY = 32  # bytes
_TRIED = 60  # originals whose names are tried
_SHORTEST, _FEWEST = 8, 3  # characters of a name that are compared; names that must agree
_TOKEN = re.compile(r"[0-9A-Za-z=-]+")
_MAC = ("md5", "sha1", "sha256", "sha512", "blake2b")


def check_guesses(subject: Subject, originals: Path) -> Iterator[Alarm]:
    """Try to make the release's key, and its names, out of what anybody knows. originals: their folder."""
    words = list(dict.fromkeys(_words([subject.protected.root, originals])))
    manifest = subject.manifest
    if manifest is not None and manifest.key_commitment is not None:
        for secret, how in (*_keys(words), *_seeds()):
            if Key(secret).matches(manifest.key_commitment):
                yield Alarm(
                    "guessable key",
                    f"the key of this release is made of {how}: anybody can guess it, and undo all that rests on it. "
                    "Let `veilkit protect` make a key",
                )
                return
    if subject.pairing.how == "hash":
        return  # it is told already
    hits = _named(subject.protected.root, originals, words)
    if len(hits) >= _FEWEST:
        yield Alarm(
            "hashed names",
            f"names of protected pictures hold hashes of their originals' names, of folders or of parts of them, "
            f"with no secret or one that is easily guessed (at least {len(hits)} of them): whoever guesses a name "
            "finds its pictures. Names need a secret key",
        )


def _words(folders: Iterable[Path]) -> Iterator[str]:
    """Names of folders and those above them, as they are and in other cases, and common words."""
    for folder in folders:
        for name in (folder.name, folder.parent.name, str(folder)):
            yield from (name, name.lower(), name.upper())
    yield from _COMMON


def _keys(words: Iterable[str]) -> Iterator[tuple[Randomness, str]]:
    for word in words:
        data = os.fsencode(word)
        made = [hashlib.new(kind, data, usedforsecurity=False).digest() for kind in HASHES]
        for text in (*made, *(digest.hex().encode() for digest in made), data):
            if text:
                padded = text[:_KEY].ljust(_KEY, b"\0"), text[-_KEY:].rjust(_KEY, b"\0")
                for secret in (*padded, (text * _KEY)[:_KEY]):
                    yield Randomness(secret), "a folder's name or a common word"


def _seeds() -> Iterator[tuple[Randomness, str]]:
    for seed in range(_SEEDS):
        yield Randomness.from_seed(seed), "a small number"
        yield Randomness(seed.to_bytes(_KEY)), "a small number"


def _named(release: Path, originals: Path, words: list[str]) -> set[str]:
    """Parts of originals' paths whose hash, under any guessable salt or key, is part of a protected name."""
    paths = sorted(path for path, is_image in walk(originals) if is_image)
    tokens = {token.rstrip("=").lower() for path, _ in walk(release) for token in _TOKEN.findall(path)}
    plain = {token.lower() for path in paths for token in _TOKEN.findall(path)}
    heads: dict[str, set[str]] = {}
    for token in tokens - plain:  # a name that was kept is no hash
        if len(token) >= _SHORTEST:
            heads.setdefault(token[:_SHORTEST], set()).add(token)
    if not heads:
        return set()
    some = paths[:: max(1, len(paths) // _TRIED)]
    parts = dict.fromkeys(part for path in some for part in _parts(path))
    found: set[str] = set()
    for part in list(parts)[: 4 * _TRIED]:
        for text in _hashes(part.encode("utf-8", "surrogateescape"), words):
            if any(text.startswith(token) for token in heads.get(text[:_SHORTEST], ())):
                found.add(part)
    return found


def _parts(path: str) -> Iterator[str]:
    """A path, its folders, its name and the words in it."""
    stem = os.path.splitext(path)[0]  # noqa: PTH122 - paths may hold bytes that are not text
    yield from (path, stem, *path.split("/"), *stem.split("/"), *re.split(r"[/_.\- ]", stem))


def _hashes(part: bytes, words: list[str]) -> Iterator[str]:
    for word in words:
        salt = os.fsencode(word)
        for kind in HASHES if not word else _MAC:
            for data in {salt + part, part + salt, salt + b":" + part, part + b":" + salt, salt + b"_" + part}:
                yield from _written(hashlib.new(kind, data, usedforsecurity=False).digest())
            yield from _written(hmac.new(salt, part, kind).digest())
    yield f"{zlib.crc32(part):08x}"


def _written(digest: bytes) -> Iterator[str]:
    yield digest.hex()
    yield base64.b32encode(digest).decode().lower()
    yield base64.urlsafe_b64encode(digest).decode().lower()
