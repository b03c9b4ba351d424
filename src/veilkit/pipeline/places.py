"""Where a run reads and writes: pictures, release, secrets and sealed originals lie apart from each other."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from veilkit.datasets.folder import Kind
from veilkit.errors import UsageError
from veilkit.pipeline.names import SCRATCH
from veilkit.pipeline.sources import Source

if TYPE_CHECKING:
    from veilkit.key import Key


@dataclass(frozen=True, slots=True)
class Places:
    """Where a run reads and writes. files: below `source`, where not all of it is meant (see `Source`)."""

    source: Path
    destination: Path
    private: Path
    sealed: Path
    key_file: Path | None
    files: tuple[str, ...] | None = None

    def survey(self) -> Iterator[tuple[str, Kind]]:
        """Everything that is to be read: its path below the source, and what it is."""
        return Source(self.source, self.files).survey()

    @property
    def scratch(self) -> Path:
        """Where files are written before they are moved into the release."""
        return self.destination / SCRATCH

    def ledger_file(self, secret: Key) -> Path:
        """One ledger per key and destination, so that one key may serve many releases."""
        stem = self.key_file.name if self.key_file else "seed"
        return self.private / f"{stem}.{secret.randomness.tag('ledger', str(self.destination)).hex()[:12]}.ledger"


def private_beside(release: Path) -> Path:
    """The folder of a release's key and ledger, unless told otherwise."""
    return release.with_name(release.name + ".private")


def sealed_beside(destination: Path) -> Path:
    """The folder of sealed originals that belongs to a release."""
    return destination.with_name(destination.name + ".sealed")


def find_places(
    named: str | Path | Sequence[str | Path],
    destination: Path,
    key: str | Path | None,
    seed: int | None,
    *,
    sealing: bool,
) -> Places:
    """The places of a run, or an error where one would lie inside another that must not hold it.

    Links are followed first, so that none hides where something really is.
    """
    given = Source.of(named)
    source, destination = _real(given.root), _real(destination)
    # Of single files it matters where each lies; what else their folder holds is not read.
    sources = [source] if given.files is None else sorted({_real((source / path).parent) for path in given.files})
    if any(lies_in(each, destination) for each in sources):
        raise UsageError(f"source and destination must lie apart, but got {source} and {destination}")
    if given.files is None and lies_in(destination, source):
        raise UsageError(f"source and destination must lie apart, but got {source} and {destination}")
    if key is not None and seed is not None:
        raise UsageError("give a key or a seed, not both")
    beside = _real(private_beside(destination))
    key_file = None if seed is not None else _real(Path(key)) if key is not None else beside / "key"
    private = beside if key is None or key_file is None else key_file.parent
    sealed = _real(sealed_beside(destination))
    whole = [source] if given.files is None else []
    apart = [(sealed, each) for each in (*whole, destination)] + [(each, sealed) for each in (*sources, destination)]
    if sealing and any(lies_in(*pair) for pair in apart):
        raise UsageError(f"sealed originals go to {sealed}, which must lie apart from source and destination")
    for folder in (*whole, destination, *([sealed] if sealing else [])):
        for secret in (private, *_folders_of(key, key_file)):
            if lies_in(secret, folder):
                raise UsageError(f"key and ledger must be kept apart from the pictures, but {secret} is in {folder}")
    for folder in (*sources, destination, *([sealed] if sealing else [])):
        if key is None and lies_in(folder, private):
            raise UsageError(f"key and ledger must be kept apart from the pictures, but {folder} is in {private}")
    return Places(source, destination, private, sealed, key_file, given.files)


def _folders_of(key: str | Path | None, key_file: Path | None) -> Iterator[Path]:
    """Where the key is, and where it was said to be, in which there may be a link to it only."""
    if key_file is not None:
        yield _real(key_file).parent
    if key is not None:
        yield _real(Path(key).parent)


def lies_in(inner: Path, outer: Path) -> bool:
    """Whether `inner` is the folder `outer` or below it, by name or by what is on the disk under another name."""
    above = (inner, *inner.parents)
    there = _identity(outer)
    return outer in above or (there is not None and any(_identity(each) == there for each in above))


def _identity(path: Path) -> tuple[int, int] | None:
    """Device and number of what is there, the same for all its names (bind mounts, upper and lower case)."""
    try:
        status = path.stat()
    except OSError:
        return None
    return (status.st_dev, status.st_ino) if status.st_ino else None


def _real(path: Path) -> Path:
    try:
        return path.resolve()
    except (OSError, RuntimeError):  # links that go round in circles
        raise UsageError(f"{path} cannot be followed to where it leads: is it a link to itself?") from None
