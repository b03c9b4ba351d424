"""The secret under which a release is made: pseudonyms, noise, masks and permutations derive from it."""

from __future__ import annotations

import base64
import hmac
import os
import re
import secrets
from dataclasses import dataclass
from pathlib import Path

from veilkit.errors import KeyFileError
from veilkit.rng import Randomness
from veilkit.secret_file import check_private, read_secret, write_new_secret

_HEADER = "veilkit-key-1"
_LINE = re.compile(rf"{_HEADER} ([0-9a-f]{{64}})\n?")


@dataclass(frozen=True, slots=True)
class Key:
    """A secret key, or a public seed in its place."""

    randomness: Randomness
    seed: int | None = None

    @classmethod
    def from_seed(cls, seed: int) -> Key:
        """A seed instead of a key, for research: anyone can reproduce the release."""
        return cls(Randomness.from_seed(seed), seed)

    def __repr__(self) -> str:
        return "Key(secret)" if self.seed is None else f"Key.from_seed({self.seed})"

    def pseudonym(self, path: str) -> str:
        """The name of a picture in the release: 26 letters and digits that mean nothing without the key."""
        return base64.b32encode(self.randomness.tag("pseudonym", path)[:16]).decode().rstrip("=").lower()

    def commitment(self) -> str:
        """A hash that identifies the key and does not reveal it."""
        return self.randomness.tag("commitment").hex()

    def matches(self, commitment: str) -> bool:
        """Whether this is the key that a manifest names."""
        return hmac.compare_digest(self.commitment().encode(), commitment.encode("utf-8", "replace"))


def read_key(file: Path) -> Key:
    """Read a key file, which nobody but its owner may have access to."""
    try:
        data, status = read_secret(file)
        text = data.decode("ascii")
    except FileNotFoundError:
        raise KeyFileError(f"there is no key file {file}; name the one that the release was made with") from None
    except OSError as error:
        raise KeyFileError(f"the key file {file} cannot be read: {error.strerror}") from None
    except UnicodeDecodeError:
        text = ""
    found = _LINE.fullmatch(text)
    if not found:
        raise KeyFileError(f"{file} is not a key file: expected one line '{_HEADER}' and 64 hexadecimal digits")
    check_private(file, status)
    return Key(Randomness(bytes.fromhex(found[1])))


def read_or_create_key(file: Path) -> tuple[Key, bool]:
    """Read a key file, or make one that only its owner may read; the second value says whether it is new."""
    if os.path.lexists(file):
        return read_key(file), False
    try:
        write_new_secret(file, f"{_HEADER} {secrets.token_hex(32)}\n")
    except FileExistsError:
        return read_key(file), False
    return read_key(file), True
