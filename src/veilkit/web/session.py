"""Who may use the page: whoever opens the one-time address, and programs that have the token."""

from __future__ import annotations

import hashlib
import hmac
import secrets
from contextlib import suppress
from pathlib import Path

from veilkit.errors import KeyFileError
from veilkit.secret_file import check_private, read_secret, write_new_secret

_LEAST = 32  # characters of a token


class Session:
    """The secrets of a server. token: what programs send; a new one at each start, unless a file keeps it.

    The one-time code in the address is used up by whoever opens it first, and another takes its place.
    """

    def __init__(self, token: str | None = None) -> None:
        self.kept = token is not None
        self.token = token or secrets.token_urlsafe(32)
        self.code = secrets.token_urlsafe(32)

    @classmethod
    def of(cls, file: Path | None) -> Session:
        """With the token of a file, which is made if it is not there; with a new one without a file."""
        if file is None:
            return cls()
        with suppress(FileExistsError):
            write_new_secret(file, secrets.token_urlsafe(32) + "\n")
        try:
            data, status = read_secret(file)
            check_private(file, status)
            token = data.decode("ascii").strip()
        except (OSError, ValueError):
            raise KeyFileError(
                f"the token in {file} cannot be read: expected one line of letters and digits"
            ) from None
        if len(token) < _LEAST or not token.isprintable() or " " in token:
            raise KeyFileError(
                f"the token in {file} must be at least {_LEAST} characters in one line, without spaces"
            )
        return cls(token)

    @property
    def cookie(self) -> str:
        """What a browser that has signed in sends."""
        return self._derived("cookie")

    @property
    def form(self) -> str:
        """What the page's own requests that change something send besides: no other page can know it."""
        return self._derived("form")

    def exchange(self, code: str) -> bool:
        """Whether this is the one-time code, which is used up by asking."""
        if not same(code, self.code):
            return False
        self.code = secrets.token_urlsafe(32)
        return True

    def _derived(self, purpose: str) -> str:
        return hmac.new(self.token.encode(), f"veilkit page {purpose}".encode(), hashlib.sha256).hexdigest()


def same(one: str, other: str) -> bool:
    """Whether two secrets are the same, in a time that does not tell how far they are."""
    return hmac.compare_digest(one.encode("utf-8", "replace"), other.encode("utf-8", "replace"))
