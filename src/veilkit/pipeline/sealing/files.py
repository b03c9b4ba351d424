"""A sealed original: the exact bytes of a picture's file, encrypted, and bound to the picture that was made of it.

The plaintext of the age file is a line that names the format, a line of JSON (`Binding`), and the original's bytes:
without veilkit, `age -d -i KEY FILE | tail -n +3` gives the original. age authenticates every byte, but not who made
the file: anybody may seal anything to a public key. What is read here is therefore checked like any other input.
"""

from __future__ import annotations

import hmac
import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, fields, replace

from veilkit.errors import SealError
from veilkit.media.reading import sha256
from veilkit.pipeline.names import path_fault
from veilkit.pipeline.sealing.age import Identity, decrypt, encrypt
from veilkit.rng import Randomness

MAGIC = b"veilkit-sealed-original-1\n"
SEALED_SUFFIX = ".age"
_LONGEST_LINE = 2**17  # two paths of that length, every byte of them escaped


@dataclass(frozen=True, slots=True)
class Binding:
    """What a sealed original belongs to.

    protected, protected_sha256: the picture of the release. original, original_sha256, original_bytes: the path below
    the source, hash and length of what is sealed. origin: a keyed hash of all these under the release's key, which
    tells its holder that nobody else made the file.
    """

    protected: str
    protected_sha256: str
    original: str
    original_sha256: str
    original_bytes: int
    origin: str

    @classmethod
    def of(cls, original: bytes, path: str, protected: str, protected_sha256: str, key: Randomness) -> Binding:
        """The binding of the original at `path` to the released picture `protected`."""
        unsigned = cls(protected, protected_sha256, path, sha256(original), len(original), "")
        return replace(unsigned, origin=unsigned._tag(key))

    def _tag(self, key: Randomness) -> str:
        facts = (self.protected, self.protected_sha256, self.original, self.original_sha256, self.original_bytes)
        return key.tag("sealed original", *facts).hex()

    def check(self, protected: str, protected_sha256: str) -> None:
        """Raise unless it binds to that picture of a release."""
        if self.protected != protected:
            raise SealError("it belongs to another picture of the release: sealed files were swapped or renamed")
        if self.protected_sha256 != protected_sha256:
            raise SealError(
                f"it was sealed for a protected picture of SHA-256 {self.protected_sha256[:12]}..., but the release "
                f"holds {protected_sha256[:12]}...: take picture and sealed file of one run"
            )

    def check_origin(self, key: Randomness) -> None:
        """Raise unless it was sealed under the release's key."""
        if not hmac.compare_digest(self.origin.encode("utf-8", "replace"), self._tag(key).encode()):
            raise SealError("it was not sealed under the release's key: somebody else has made it")


@dataclass(frozen=True, slots=True)
class Unsealed:
    """An opened file: the original's bytes, which are those that the binding names, and whose key opened it."""

    binding: Binding
    original: bytes
    recipient: str


def seal(original: bytes, binding: Binding, recipients: Sequence[str]) -> bytes:
    """The age file of an original."""
    line = json.dumps(asdict(binding), sort_keys=True).encode("ascii") + b"\n"
    return encrypt(b"".join((MAGIC, line, original)), recipients)


def unseal(sealed: bytes, identities: Sequence[Identity]) -> Unsealed:
    """Open an age file and check that it is whole and holds what it says."""
    plain, recipient = decrypt(sealed, identities)
    if not plain.startswith(MAGIC):
        raise SealError(f"it opens, but is no sealed original: expected it to begin with {MAGIC.decode().strip()}")
    end = plain.find(b"\n", len(MAGIC), len(MAGIC) + _LONGEST_LINE)
    binding = _parse(plain[len(MAGIC) : max(end, 0)])
    original = plain[end + 1 :]
    if len(original) != binding.original_bytes or sha256(original) != binding.original_sha256:
        raise SealError("it opens, but its bytes are not those that it names: whoever made it did not use veilkit")
    return Unsealed(binding, original, recipient)


def check_path(path: str) -> None:
    """Raise unless `path` is relative, in its simplest form, and leads below the folder that it is joined to."""
    if fault := path_fault(path):
        raise SealError(f"the path that it names {fault}: whoever made it means harm")


def _parse(line: bytes) -> Binding:
    """The binding of a header line; whatever is not exactly one is refused."""
    try:
        facts = json.loads(line.decode("ascii"))
    except (ValueError, RecursionError):
        facts = None
    kinds = {each.name: int if each.name == "original_bytes" else str for each in fields(Binding)}
    if not isinstance(facts, dict) or {name: type(value) for name, value in facts.items()} != kinds:
        raise SealError(
            "it opens, but its header is not that of a sealed original: whoever made it did not use veilkit"
        )
    return Binding(**facts)
