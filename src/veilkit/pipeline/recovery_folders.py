"""What every way of recovering begins with: a finished release, pictures of it, and a place for what comes out."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from veilkit.errors import DataError, DestinationError, SealError, UsageError
from veilkit.media.reading import sha256
from veilkit.pipeline.manifest import MANIFEST, SUMS, Manifest, read_manifest, read_sums
from veilkit.pipeline.sealing import check_path

SCRATCH = ".veilkit-recover"  # where an original is written before it gets its name


@dataclass(frozen=True, slots=True)
class Recovered:
    """What a recovery did: originals restored now, and those that were already there, byte for byte."""

    destination: Path
    restored: int
    already_there: int
    log: Path


def check_places(sources: Sequence[Path], target: Path, log: Path) -> None:
    """Raise where originals or the log would be written into each other, or into one of the folders read from."""
    for given in sources:
        if target == given or given in target.parents or target in given.parents:
            raise UsageError(f"originals must be kept apart from {given}, but got {target}: choose another folder")
    for given in (*sources, target):
        if log == given or given in log.parents:
            raise UsageError(f"the access log must be kept apart from pictures, but {log} is in {given}")
    if target.exists() and not target.is_dir():
        raise DestinationError(f"expected a folder for the originals, but {target} is a file")


def finished_manifest(folder: Path) -> Manifest:
    """The manifest of a release that is finished and whole."""
    manifest = read_manifest(folder)
    if manifest is None:
        raise DataError(
            f"{folder} has no {MANIFEST}, so it is no finished release: run the same `veilkit protect` again"
        )
    try:
        if sha256((folder / SUMS).read_bytes()) == manifest.sums_sha256:
            return manifest
    except OSError as error:
        raise DataError(f"{folder / SUMS} cannot be read: {error.strerror}") from None
    raise DataError(f"{folder / SUMS} is not the one that {MANIFEST} names: fetch the release again")


def wanted_pictures(folder: Path, manifest: Manifest, only: Sequence[str]) -> dict[str, str]:
    """The pictures to restore and their hashes: those named in `only`, or all."""
    pictures = dict(read_sums(folder / SUMS))
    for picture in pictures:
        try:
            check_path(picture)
        except SealError:
            raise DataError(f"{folder / SUMS} names {picture!r}, which is no file below the folder") from None
    if unknown := [name for name in only if name not in pictures]:
        raise UsageError(
            f"the release has no picture {unknown[0]!r}: names are those in its {SUMS}, "
            f"which has {manifest.files}, such as {next(iter(pictures), None)!r}"
        )
    return {name: pictures[name] for name in dict.fromkeys(only)} if only else pictures


@contextmanager
def scratch_folder(target: Path) -> Iterator[Path]:
    """A folder for unfinished files, held by one recovery at a time; what a killed one left in it is removed."""
    scratch = target / SCRATCH
    try:
        target.mkdir(parents=True, exist_ok=True, mode=0o700)
        scratch.mkdir(exist_ok=True, mode=0o700)
        held = os.open(scratch, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError as error:
        raise DestinationError(f"{target} cannot be written: {error.strerror}") from None
    try:
        try:
            fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise DestinationError(f"another recovery is writing to {target}: wait for it, or stop it") from None
        try:
            _empty(scratch)
            yield scratch
        finally:  # an interrupt must not leave part of an original behind
            _empty(scratch)
            scratch.rmdir()
    finally:
        os.close(held)


def _empty(folder: Path) -> None:
    for leftover in folder.iterdir():
        leftover.unlink()
