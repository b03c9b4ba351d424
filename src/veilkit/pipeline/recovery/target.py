"""What every way of recovering begins with: a finished release, pictures of it, a safe place for what comes out."""

from __future__ import annotations

import fcntl
import os
import stat
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from veilkit.errors import DataError, DestinationError, SealError, UsageError
from veilkit.media.reading import sha256
from veilkit.pipeline.ledger_queries import selected
from veilkit.pipeline.manifest import MANIFEST, SUMS, Manifest, listed_pictures, read_manifest, read_sums
from veilkit.pipeline.places import private_beside
from veilkit.pipeline.sealing.files import SEALED_SUFFIX

SCRATCH = ".veilkit-recover"  # where an original is written before it gets its name


@dataclass(frozen=True, slots=True)
class Recovered:
    """What a recovery did: originals restored now, and those that were already there, byte for byte."""

    destination: Path
    restored: int
    already_there: int
    log: Path

    def __repr__(self) -> str:
        there = f", {self.already_there:,} already there" if self.already_there else ""
        return f"Recovered({self.restored:,} restored in {str(self.destination)!r}{there})"


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
    """The manifest of a release that is finished."""
    manifest = read_manifest(folder)
    if manifest is None:
        raise DataError(
            f"{folder} has no {MANIFEST}, so it is no finished release: run the same `veilkit protect` again"
        )
    return manifest


def wanted_pictures(
    folder: Path, manifest: Manifest, only: Sequence[str], private: Path | None = None
) -> dict[str, str]:
    """The pictures to restore and their hashes: those named in `only` (see `selection`), or all.

    private: the folder of the release's ledger, by default the one beside it.
    """
    pictures = listed_pictures(folder, manifest)
    if not pictures:
        raise DataError(f"{folder / SUMS} lists no picture, so there is nothing to restore: fetch the release again")
    if not only:
        return pictures
    return {name: pictures[name] for name in selected(only, pictures, private or private_beside(folder))}


def check_sealed_listing(sealed: Path, pictures: Mapping[str, str]) -> None:
    """Raise where the sealed folder lists originals of pictures that the release does not: some would be left out."""
    if not (sealed / SUMS).is_file():
        return
    lost = sum(name.removesuffix(SEALED_SUFFIX) not in pictures for name, _ in read_sums(sealed / SUMS))
    if lost:
        raise DataError(
            f"{sealed} holds {lost} originals of pictures that the release does not list: fetch both again, or name "
            "what is to be restored (--only)"
        )


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
        except OSError as error:
            raise DestinationError(f"{target} cannot be locked: {error.strerror}") from None
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


def check_place(folder: Path, path: str, digest: str, *, scratch: str) -> None:
    """Raise unless `path` below `folder` is free, or holds just the file of SHA-256 `digest`.

    A link on the way is refused, as it may lead out of the folder. scratch: the one name that is taken.
    """
    *above, _ = parts = path.split("/")
    if parts[0] == scratch:
        raise SealError(f"its path begins with {scratch}, which is needed for unfinished files")
    for depth in range(1, len(above) + 1):
        mode = _mode(folder.joinpath(*above[:depth]))
        if mode is not None and not stat.S_ISDIR(mode):
            raise SealError("a file or a link is where its folder would be: choose an empty folder")
    if _mode(folder / path) is not None and not is_restored(folder / path, digest):
        raise SealError("another file is already in its place: choose an empty folder, or move that file away")


def check_together(paths: Sequence[str]) -> dict[str, str]:
    """Paths that cannot stand beside the others, each with the reason: named twice, or a folder of another."""
    counts = Counter(paths)
    folders = {path[:end] for path in counts for end in range(len(path)) if path[end] == "/"}
    clashing = {path: "two sealed files name one original" for path, count in counts.items() if count > 1}
    return clashing | dict.fromkeys(counts.keys() & folders, "its path is that of another original's folder")


def is_restored(file: Path, digest: str) -> bool:
    """Whether a regular file of SHA-256 `digest` is there, and no link."""
    mode = _mode(file)
    try:
        return mode is not None and stat.S_ISREG(mode) and sha256(file.read_bytes()) == digest
    except OSError:
        return False


def _mode(file: Path) -> int | None:
    """What is there, links not followed; None for nothing."""
    try:
        return os.lstat(file).st_mode
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise SealError(f"its place cannot be looked at: {error.strerror}") from None
