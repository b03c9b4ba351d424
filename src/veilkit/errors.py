"""Every error veilkit raises on purpose.

    VeilkitError
    |-- UsageError            the caller asked for something that does not make sense
    |   |-- ConfigError       a parameter has the wrong name, type or range
    |   |-- UnknownNameError  a name is not in a lookup table
    |   `-- MissingExtraError an optional dependency is not installed
    |-- DataError             what was found on disk is not what was expected
    |   |-- LayoutError       a dataset folder lacks a part of its layout
    |   |-- RefusedImage      one file cannot be protected; the rest of the run goes on
    |   `-- SealError         a sealed original cannot be opened, or is not what it should be
    |-- CheckpointError       a model file is damaged, altered or of another architecture
    |-- KeyFileError          a key file is missing, damaged or not the one that made a release
    |-- DestinationError      the output cannot be written (rights, space, not ours)
    |-- BudgetError           a release would cost more privacy than its budget allows
    `-- WorkerError           worker processes keep dying

A message says what was expected, what came, and what to do about it.
"""

from __future__ import annotations


class VeilkitError(Exception):
    """Base of all errors raised on purpose."""


class UsageError(VeilkitError):
    """The caller asked for something that does not make sense."""


class ConfigError(UsageError):
    """A parameter has the wrong name, type or range."""


class UnknownNameError(UsageError):
    """A name is not in a lookup table."""


class MissingExtraError(UsageError):
    """An optional dependency is not installed; the message names the extra."""

    def __init__(self, package: str, extra: str, otherwise: str = "") -> None:
        hint = f"; or {otherwise}" if otherwise else ""
        super().__init__(f"this needs {package}, which is not installed: pip install 'veilkit[{extra}]'{hint}")
        self._parts = package, extra, otherwise

    def instead(self, otherwise: str) -> MissingExtraError:
        """The same error, with what would do without the extra."""
        return type(self)(*self._parts[:2], otherwise)

    def __reduce__(self) -> tuple[type[MissingExtraError], tuple[str, str, str]]:
        return type(self), self._parts


class DataError(VeilkitError):
    """What was found on disk is not what was expected."""


class LayoutError(DataError):
    """A dataset folder lacks a part of its layout."""


class RefusedImage(DataError):  # noqa: N818 - a verdict on one file, not a failure of the run
    """One file cannot be protected. The reason never contains the file's name or content."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


class SealError(DataError):
    """A sealed original cannot be opened, or does not belong to its picture. The reason names no file."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


class CheckpointError(VeilkitError):
    """A model file is damaged, altered or of another architecture."""


class KeyFileError(VeilkitError):
    """A key file is missing, damaged or not the one that made a release."""


class DestinationError(VeilkitError):
    """The output cannot be written."""


class BudgetError(VeilkitError):
    """A release would cost more privacy than its budget allows; nothing was released, nothing charged.

    over: the records or people whose budget it is. The message names none of them, since messages end up in logs.
    """

    def __init__(self, message: str, over: tuple[str, ...] = ()) -> None:
        super().__init__(message)
        self.over = over

    def __reduce__(self) -> tuple[type[BudgetError], tuple[str, tuple[str, ...]]]:
        return type(self), (str(self), self.over)


class WorkerError(VeilkitError):
    """Worker processes keep dying."""
