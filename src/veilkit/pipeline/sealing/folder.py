"""The folder of a release's sealed originals, `DESTINATION.sealed`: an age file for each released picture.

It lies beside the release and the private folder, so that each of the three can go its own way.
"""

from __future__ import annotations

import os
import secrets
import shutil
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from veilkit.errors import DataError, DestinationError, UsageError
from veilkit.media.reading import sha256
from veilkit.media.writing import write_atomically
from veilkit.methods import Method, Synthesiser
from veilkit.pipeline.ledger import Entry, Ledger
from veilkit.pipeline.manifest import SUMS, write_sums
from veilkit.pipeline.names import SCRATCH
from veilkit.pipeline.sealing.age import read_recipients
from veilkit.pipeline.sealing.files import SEALED_SUFFIX, Binding, seal
from veilkit.rng import Randomness

_FACT = "sealed_to"  # in the ledger, which is private: the recipients themselves


@dataclass(frozen=True, slots=True)
class SealedFolder:
    """Where and to whom a run seals. It holds text and paths only: it is sent to worker processes.

    scratch: new for every run. Orphaned workers of a killed run, whose scratch is gone, cannot put a file of theirs
    in the place of one that the ledger knows.
    """

    folder: Path
    scratch: Path
    recipients: tuple[str, ...]

    def holds(self, entry: Entry) -> bool:
        """Whether the sealed original that the ledger knows is there, whole."""
        try:
            data = (self.folder / (entry.output + SEALED_SUFFIX)).read_bytes()
        except OSError:
            return False
        return sha256(data) == entry.sealed_sha256

    def add(self, entry: Entry, original: bytes, key: Randomness) -> Entry:
        """Seal the original of a protected picture; returns the entry that knows of it."""
        binding = Binding.of(original, entry.source, entry.output, entry.output_sha256 or "", key)
        data = seal(original, binding, self.recipients)
        write_atomically(self.folder / (entry.output + SEALED_SUFFIX), data, self.scratch, undated=True)
        return replace(entry, sealed_sha256=sha256(data))


def recipients_for(method: Method[Any], seal_to: Sequence[str | Path]) -> tuple[str, ...]:
    """To whom originals are sealed; refused where a released picture has none."""
    if isinstance(seal_to, str | Path):
        raise UsageError("seal_to is a list of recipients or files: give [recipient], not one alone")
    if seal_to and isinstance(method, Synthesiser):
        raise UsageError(
            f"{method.name} makes pictures that belong to no original, so there is none to seal with each: "
            "leave --seal-to out, and encrypt the folder of originals itself if it is to be kept"
        )
    return read_recipients(seal_to)


def check_sealed(folder: Path, ledger: Ledger, recipients: tuple[str, ...], *, same: bool) -> None:
    """Refuse recipients other than those of what is already sealed; a folder never holds files of two kinds.

    same: whether the ledger speaks of this very release.
    """
    before = ledger.about().get(_FACT, "") if same else ""
    now = " ".join(recipients)
    if before == now or not (folder.is_dir() and {path.name for path in folder.iterdir()} - {SCRATCH}):
        return
    if not before:
        raise DestinationError(f"{folder} holds files that are not of this release: move it away")
    if not now:
        raise DestinationError(
            f"{folder} holds this release's originals, sealed to {before}: seal to the same, "
            "or move that folder away to go on without"
        )
    raise DestinationError(
        f"{folder} holds this release's originals, sealed to {before}, but this run seals to {now}: "
        "give the same recipients, or move that folder away to seal all originals anew"
    )


def open_sealed(folder: Path, ledger: Ledger, recipients: tuple[str, ...]) -> SealedFolder | None:
    """Make the folder ready; None where nothing is to be sealed."""
    now = " ".join(recipients)
    if ledger.about().get(_FACT, "") != now:
        ledger.forget_seals()
        ledger.describe(**{_FACT: now})
    if not recipients:
        return None
    try:
        (folder / SUMS).unlink(missing_ok=True)  # it stands only beside a finished release
        for _ in range(3):  # an orphan may put a file into it in the very moment that it is emptied
            shutil.rmtree(folder / SCRATCH, ignore_errors=True)
        scratch = folder / SCRATCH / secrets.token_hex(8)
        scratch.mkdir(parents=True)
    except OSError as error:
        raise DestinationError(f"{folder} cannot be written: {error.strerror}") from None
    return SealedFolder(folder, scratch, recipients)


def close_sealed(sealed: SealedFolder, ledger: Ledger) -> None:
    """Write the hashes of the sealed files, once every picture of the release has one."""
    missing = 0

    def hashes() -> Iterator[tuple[str, str]]:
        nonlocal missing
        for entry in ledger.entries("done", present=False):
            name = entry.output + SEALED_SUFFIX
            if entry.sealed_sha256 is None or not (sealed.folder / name).is_file():
                missing += 1
            else:
                yield name, entry.sealed_sha256

    try:
        write_sums(sealed.scratch / SUMS, hashes())
        if missing:
            raise DestinationError(
                f"{missing} pictures of the release have no sealed original, and the source no longer holds theirs: "
                "put them back and run the same command, or choose a new folder"
            )
        (sealed.scratch / SUMS).replace(sealed.folder / SUMS)
        shutil.rmtree(sealed.folder / SCRATCH)
    except OSError as error:
        raise DestinationError(f"{sealed.folder} cannot be written: {error.strerror}") from None


def check_sealed_name(output: str) -> str:
    """The name of a picture in the release, if that of its sealed original is not too long."""
    if len(os.fsencode(output.rpartition("/")[2] + SEALED_SUFFIX)) > 255:
        raise DataError("a picture's kept name is too long for its sealed original: shorten it, or use pseudonyms")
    return output
