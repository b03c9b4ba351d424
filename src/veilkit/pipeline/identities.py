"""Files of age keys: identities (secret, one's own) and lists of recipients (public, those of others)."""

from __future__ import annotations

import datetime
import os
from collections.abc import Sequence
from pathlib import Path

from veilkit.errors import DestinationError, KeyFileError, UsageError
from veilkit.pipeline.age import PUBLIC, SECRET, Identity, check_recipient
from veilkit.secret_file import check_private, read_secret, write_new_secret


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
