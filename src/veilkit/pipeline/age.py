"""The age format (age-encryption.org/v1) with X25519 keys: what veilkit uses of pyrage, with types.

Recipients stay text here, so that they can be sent to worker processes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import pyrage

from veilkit.errors import KeyFileError, SealError, UsageError

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
