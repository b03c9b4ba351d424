"""Who restored which original, and when: one line of JSON for each picture, appended and never rewritten."""

from __future__ import annotations

import datetime
import errno
import json
import os
from pathlib import Path
from types import TracebackType
from typing import Literal, Self, TypeAlias

from veilkit.errors import DestinationError

Result: TypeAlias = Literal["restored", "already there", "refused", "failed"]


class AccessLog:
    """A log file, open for appending, that only its owner may read.

    release: the hash of the release's SHA256SUMS, which stands for the release in every line.
    """

    def __init__(self, file: Path, release: str) -> None:
        self.file, self._release = file, release

    def __enter__(self) -> Self:
        try:
            self.file.parent.mkdir(parents=True, exist_ok=True)
            self._out = os.open(self.file, os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)
            size = os.fstat(self._out).st_size
            if size and os.pread(self._out, 1, size - 1) != b"\n":  # a line that a power cut has cut off
                os.write(self._out, b"\n")
        except OSError as error:
            raise self._unwritable(error) from None
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            os.fsync(self._out)
        except OSError as failure:
            if failure.errno != errno.EINVAL:  # a pipe or a terminal as the log
                raise self._unwritable(failure) from None
        finally:
            os.close(self._out)

    def add(
        self, picture: str, recipient: str, result: Result, *, original: str = "", sha256: str = "", reason: str = ""
    ) -> None:
        """Append a line. It is written before an original is: what cannot be logged is not restored.

        picture: name in the release. recipient: the public half of the key used. original, sha256: of the file
        restored.
        """
        line = {
            "time": datetime.datetime.now(datetime.UTC).isoformat(timespec="milliseconds"),
            "recipient": recipient,
            "release": self._release,
            "picture": picture,
            "original": original or None,
            "sha256": sha256 or None,
            "result": result,
            "reason": reason or None,
        }
        data = json.dumps(line).encode("ascii") + b"\n"
        try:
            if os.write(self._out, data) != len(data):
                raise DestinationError(f"the access log {self.file} cannot be written: is the disk full?")
        except OSError as error:
            raise self._unwritable(error) from None

    def _unwritable(self, error: OSError) -> DestinationError:
        return DestinationError(
            f"the access log {self.file} cannot be written ({error.strerror}), and without it nothing is restored"
        )
