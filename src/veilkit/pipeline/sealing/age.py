"""age keys (age-encryption.org/v1, X25519): what veilkit uses of pyrage, and the files that keys lie in.

Recipients stay text here, so that they can be sent to worker processes.
"""

from __future__ import annotations

import datetime
import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pyrage

from veilkit.errors import DestinationError, KeyFileError, SealError, UsageError
from veilkit.secret_file import check_private, read_secret, write_new_secret

SECRET = "AGE-SECRET-KEY-1"  # noqa: S105 - how a secret key begins
PUBLIC = "age1"
_NO_KEY_FITS = "No matching keys found"


@dataclass(frozen=True, slots=True)
class Identity:
    """A secret key; `recipient` is its public half. The secret is not shown by `repr`."""

    recipient: str
    secret: str = field(repr=False)

    @classmethod
    def generate(cls) -> Identity:
        """A new key from the system's randomness."""
        made = pyrage.x25519.Identity.generate()
        return cls(str(made.to_public()), str(made))

    @classmethod
    def from_text(cls, text: str) -> Identity:
        """The key that `AGE-SECRET-KEY-1...` stands for. The text is never part of an error."""
        try:
            return cls(str(pyrage.x25519.Identity.from_str(text).to_public()), text)
        except pyrage.IdentityError:
            raise KeyFileError(f"expected a key {SECRET}..., but its checksum is wrong: was it cut off?") from None


def check_recipient(text: str) -> None:
    """Raise unless `text` is an X25519 recipient."""
    try:
        pyrage.x25519.Recipient.from_str(text)
    except pyrage.RecipientError as error:
        raise UsageError(
            f"expected a recipient {PUBLIC}... as `veilkit keygen` or age-keygen prints it, but {text!r} is none "
            f"({error}): copy it again, whole"
        ) from None


def encrypt(data: bytes, recipients: Sequence[str]) -> bytes:
    """`data` as an age file that any one of the recipients can open; other bytes on every call."""
    encrypted: bytes = pyrage.encrypt(data, [pyrage.x25519.Recipient.from_str(each) for each in recipients])
    return encrypted


def decrypt(data: bytes, identities: Sequence[Identity]) -> tuple[bytes, str]:
    """The plaintext of a whole age file, authenticated to its last byte, and the recipient whose key opened it."""
    for identity in identities:
        try:
            return pyrage.decrypt(data, [pyrage.x25519.Identity.from_str(identity.secret)]), identity.recipient
        except pyrage.DecryptError as error:
            if str(error) != _NO_KEY_FITS:
                raise SealError("it is damaged, cut off or altered: fetch it again from where it is stored") from None
    raise SealError(
        "it is not sealed to this key, or its beginning was altered: give the identity of one of its recipients"
    )


def write_identity(file: Path) -> str:
    """Make a new identity file as age-keygen does, for its owner alone; returns the public recipient."""
    made = Identity.generate()
    now = datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    if os.path.lexists(file):
        raise _taken(file)
    try:
        write_new_secret(file, f"# created: {now}\n# public key: {made.recipient}\n{made.secret}\n")
    except FileExistsError:
        raise _taken(file) from None
    return made.recipient


def read_identities(file: Path) -> tuple[Identity, ...]:
    """The keys of an identity file, of which any may be tried; others than its owner may not have access to it."""
    lines, status = _lines(file)
    if not lines or not all(line.startswith(SECRET) for line in lines):
        hint = " (it names recipients, which are public)" if any(line.startswith(PUBLIC) for line in lines) else ""
        raise KeyFileError(
            f"{file} is not an identity file{hint}: expected lines {SECRET}... as `veilkit keygen` writes them"
        )
    found = tuple(Identity.from_text(line) for line in lines)
    check_private(file, status)
    return found


def read_recipients(named: Sequence[str | Path]) -> tuple[str, ...]:
    """The recipients `age1...`, and those in files of one a line, each once and in the order of their names."""
    found: set[str] = set()
    for each in named:
        text = str(each)
        if text.startswith(SECRET):
            raise UsageError("expected a public recipient, but got a secret key: give the age1... that belongs to it")
        lines = [text] if isinstance(each, str) and text.startswith(PUBLIC) else _lines(Path(each))[0]
        if any(line.startswith(SECRET) for line in lines):
            raise UsageError(
                f"{each} holds a secret key, which has no place where pictures are protected: "
                "give the public recipient that `veilkit keygen` printed"
            )
        if not lines:
            raise UsageError(f"expected recipients in {each}, one a line, but there are none")
        for line in lines:
            check_recipient(line)
        found.update(lines)
    return tuple(sorted(found))


def _lines(file: Path) -> tuple[list[str], os.stat_result]:
    """The lines of a text file that are neither empty nor comments, and the file's status."""
    try:
        data, status = read_secret(file)
        text = data.decode("utf-8")
    except FileNotFoundError:
        raise KeyFileError(f"there is no file {file}: expected one with age keys, one a line") from None
    except OSError as error:
        raise KeyFileError(f"{file} cannot be read: {error.strerror}") from None
    except UnicodeDecodeError:
        raise KeyFileError(f"{file} is not text: expected age keys, one a line") from None
    stripped = (line.strip() for line in text.splitlines())
    return [line for line in stripped if line and not line.startswith("#")], status


def _taken(file: Path) -> DestinationError:
    return DestinationError(
        f"{file} is already there and is never overwritten, as what was sealed to an old key would be lost with it: "
        "choose another name"
    )
