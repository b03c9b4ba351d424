"""Where a run reads and writes: pictures, release, secrets and sealed originals lie apart from each other."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from veilkit.datasets.folder import check_folder
from veilkit.errors import UsageError
from veilkit.key import Key
from veilkit.pipeline.naming import SCRATCH
from veilkit.pipeline.sealed import sealed_beside


@dataclass(frozen=True, slots=True)
class Places:
    """Where a run reads and writes."""

    source: Path
    destination: Path
    private: Path
    sealed: Path
    key_file: Path | None

    @property
    def scratch(self) -> Path:
        """Where files are written before they are moved into the release."""
        return self.destination / SCRATCH

    def ledger_file(self, secret: Key) -> Path:
        """One ledger per key and destination, so that one key may serve many releases."""
        stem = self.key_file.name if self.key_file else "seed"
        return self.private / f"{stem}.{secret.randomness.tag('ledger', str(self.destination)).hex()[:12]}.ledger"


def find_places(
    source: Path, destination: Path, key: str | Path | None, seed: int | None, *, sealing: bool
) -> Places:
    """The places of a run, or an error where one would lie inside another that must not hold it."""
    check_folder(source)
    source, destination = source.resolve(), destination.resolve()
    if destination == source or source in destination.parents or destination in source.parents:
        raise UsageError(f"source and destination must lie apart, but got {source} and {destination}")
    if key is not None and seed is not None:
        raise UsageError("give a key or a seed, not both")
    beside = destination.with_name(destination.name + ".private")
    key_file = None if seed is not None else Path(key).resolve() if key is not None else beside / "key"
    private = beside if key_file is None else key_file.parent
    sealed = sealed_beside(destination).resolve()
    if sealing and any(a in (b, *b.parents) for a, b in ((sealed, source), (source, sealed), (destination, sealed))):
        raise UsageError(f"sealed originals go to {sealed}, which must lie apart from source and destination")
    for folder in (source, destination, *([sealed] if sealing else [])):
        if private == folder or folder in private.parents:
            raise UsageError(f"the key must be kept apart from the pictures, but {private} is in {folder}")
    return Places(source, destination, private, sealed, key_file)
