"""A file with a secret in it: written for its owner alone, and refused where others can read it."""

from __future__ import annotations

import os
import secrets
import shlex
import stat
import tempfile
import warnings
from pathlib import Path

from veilkit.errors import DestinationError, KeyFileError

_LARGEST = 2**24  # bytes
_OTHERS, _GROUP = stat.S_IRWXO, stat.S_IRWXG


class SecretFileWarning(UserWarning):
    """A file of secrets lies where nothing keeps others from reading it, and no command could change that."""


def write_new_secret(file: Path, text: str) -> None:
    """Write a file that only its owner may read: whole or not at all, and never over another (FileExistsError)."""
    draft = file.with_name(f".{file.name}.{secrets.token_hex(8)}")
    try:
        file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        with os.fdopen(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="ascii") as out:
            out.write(text)
            out.flush()
            os.fsync(out.fileno())
        try:
            file.hardlink_to(draft)
        finally:
            draft.unlink()
    except FileExistsError:
        raise
    except OSError as error:
        raise DestinationError(f"the key file {file} cannot be written: {error.strerror}") from None


def read_secret(file: Path) -> tuple[bytes, os.stat_result]:
    """The bytes and status of a file of secrets, for `check_private`. OSError comes as the system raises it."""
    with file.open("rb") as opened:
        status = os.fstat(opened.fileno())
        data = opened.read(_LARGEST + 1)
    if len(data) > _LARGEST:
        raise KeyFileError(f"{file} is too large for a file of secrets: expected at most {_LARGEST} bytes")
    return data, status


def check_private(file: Path, status: os.stat_result) -> None:
    """Raise where others than its owner have access to a file of secrets, as ssh does with its keys.

    A group may share the file of another owner, as that is how we read it ourselves. Where a file system keeps no
    rights (a Windows share, a memory stick) nobody can mend them: SecretFileWarning is issued instead.
    """
    own = status.st_uid == os.geteuid()
    mode = stat.S_IMODE(status.st_mode)
    if not stat.S_ISREG(status.st_mode) or not mode & (_OTHERS | _GROUP if own else _OTHERS):
        return
    if _keeps_rights(file.parent):
        raise KeyFileError(
            f"{file} holds secrets, but others than its owner have access to it (mode {mode:03o}): run "
            f"`chmod 600 {shlex.quote(str(file))}`. A key that somebody may have read is to be replaced by a new one"
        )
    warnings.warn(
        f"{file} is on a file system that keeps no rights: whoever can open that folder can read the secrets in it. "
        "Better keep them elsewhere",
        SecretFileWarning,
        stacklevel=2,
    )


def _keeps_rights(folder: Path) -> bool:
    """Whether a file made for its owner alone stays so there; assumed where none can be made."""
    try:
        with tempfile.NamedTemporaryFile(dir=folder, prefix=".rights-") as probe:
            os.fchmod(probe.fileno(), 0o600)
            return not stat.S_IMODE(os.fstat(probe.fileno()).st_mode) & (_OTHERS | _GROUP)
    except PermissionError:
        # Either the folder is not ours to write to, or chmod itself is not permitted, as on some shares.
        return not os.access(folder, os.W_OK)
    except OSError:
        return True
