"""The released folder: made ready before the work, and closed with hashes and manifest after it."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any

from veilkit.configs import differing
from veilkit.datasets.soft_labels import SOFT_LABELS
from veilkit.errors import DataError, DestinationError
from veilkit.key import Key
from veilkit.media.shape import Shape
from veilkit.media.video import VideoFormat
from veilkit.media.writing import Files, write_atomically
from veilkit.methods import ChangesParts, Method, Synthesiser
from veilkit.pipeline.ledger import Ledger
from veilkit.pipeline.manifest import MANIFEST, SUMS, Manifest, read_manifest, write_sums
from veilkit.pipeline.names import SCRATCH, Names
from veilkit.pipeline.places import Places
from veilkit.pipeline.release_lock import clear_scratch, release_lock
from veilkit.pipeline.sealing.folder import check_sealed
from veilkit.version import __version__


@dataclass(frozen=True, slots=True)
class Wanted:
    """What a release is to be. recipients: to whom the originals are sealed, if to anybody."""

    method: Method[Any]
    files: Files
    names: Names
    labels: str
    recipients: tuple[str, ...]
    shape: Shape = field(default_factory=Shape)
    video: VideoFormat = field(default_factory=VideoFormat)


@contextmanager
def open_release(wanted: Wanted, places: Places, ledger: Ledger, secret: Key) -> Iterator[None]:
    """Hold the destination, made ready, or refuse it where it holds something else than this release."""
    facts = {
        "method": wanted.method.fingerprint(),
        "format": f"{wanted.files}{wanted.shape}{wanted.video}",
        "names": wanted.names,
        "source": str(places.source),
    }
    before = {name: value for name, value in ledger.about().items() if name in facts}
    check = partial(_refuse_others, wanted, places, ledger, secret, before, facts)
    with _writing_to(places.destination):
        if not os.path.lexists(places.scratch):  # a folder of somebody else's is not even locked
            check()
    with release_lock(places.scratch):
        with _writing_to(places.destination):
            check()
            check_sealed(places.sealed, ledger, wanted.recipients, same=before == facts)
            if before != facts:
                ledger.clear()
            # before anything is in the folder: a kill in between must not block a resume
            ledger.describe(**facts, settings=json.dumps(wanted.method.public_config()))
            clear_scratch(places.scratch)
        _refuse_unfinished_withdrawal(ledger)
        yield


def journal_of(ledger: Ledger) -> Path:
    """What a withdrawal that is under way is to take out."""
    return ledger.file.with_suffix(".withdrawal.json")


def _refuse_unfinished_withdrawal(ledger: Ledger) -> None:
    if journal_of(ledger).exists():
        raise DestinationError(
            "a withdrawal from this release was begun and not finished: run `veilkit withdraw` on it first"
        )


@contextmanager
def _writing_to(destination: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise DestinationError(f"{destination} cannot be written: {error.strerror}") from None


def _refuse_others(
    wanted: Wanted, places: Places, ledger: Ledger, secret: Key, before: Mapping[str, str], facts: Mapping[str, str]
) -> None:
    """Raise where the folder holds anything but what a run with this key and these settings has begun."""
    if not places.destination.exists() or all(path == places.scratch for path in places.destination.iterdir()):
        return
    if before != facts:
        what = "files that are not of this release"
        if before:
            what = f"a release with {_others(ledger.about(), facts, wanted)}"
        raise DestinationError(f"{places.destination} holds {what}: choose a new or empty folder")
    own = _own_files(wanted)
    refuse_unlisted(places.destination, lambda path: path in own or ledger.state(path) is not None, finished=False)
    with suppress(DataError):  # one that was damaged is written again
        manifest = read_manifest(places.destination)
        if manifest is not None and (manifest.key_commitment, manifest.seed) != _public(secret):
            raise DestinationError(
                f"{places.destination} holds a release that was finished with another key, under the names of this "
                "one: choose a new or empty folder"
            )


def _refuse_unlisted_pictures(wanted: Wanted, places: Places, ledger: Ledger) -> None:
    """Raise where the folder holds what the release is not going to list."""
    own = _own_files(wanted)

    def belongs(path: str) -> bool:
        state = ledger.state(path)
        if state == "waiting":  # a run was killed when it had written it, and its original is gone since
            remove_file(places.destination, path)
        return state in ("done", "waiting") or path in own

    refuse_unlisted(places.destination, belongs, finished=True)


def remove_file(release: Path, path: str) -> None:
    """Remove a file, and the folders that are empty without it."""
    (release / path).unlink()
    with suppress(OSError):
        for folder in (release / path).parents:
            if folder == release:
                return
            folder.rmdir()


def _own_files(wanted: Wanted) -> frozenset[str]:
    """The files of a release that are no pictures."""
    return frozenset({MANIFEST, SUMS} | ({SOFT_LABELS} if isinstance(wanted.method, Synthesiser) else set()))


def _public(secret: Key) -> tuple[str | None, int | None]:
    """What a manifest says of the key: its commitment, or the seed in its place."""
    return (secret.commitment(), None) if secret.seed is None else (None, secret.seed)


def _others(about: Mapping[str, str], facts: Mapping[str, str], wanted: Wanted) -> str:
    """In words what a release in the way has other than the one that is wanted: of its method, which settings."""
    found = []
    for name in sorted(name for name in facts if about.get(name) != facts[name]):
        there, here = about.get(name, "").partition(":")[0], wanted.method.name
        if name != "method":
            found.append(f"another {name}")
        elif there != here:
            found.append(f"another method ({there} there, {here} here)")
        else:
            try:
                before = json.loads(about.get("settings", "{}"))
            except ValueError:
                before = {}
            settings = differing(before, json.loads(json.dumps(wanted.method.public_config()))) if before else {}
            which = "; ".join(f"{key}: {one} there, {two} here" for key, (one, two) in settings.items())
            found.append(f"other settings of {here}" + (f" ({which})" if which else " or another model"))
    return ", ".join(found)


def close_release(wanted: Wanted, places: Places, ledger: Ledger, secret: Key) -> None:
    """Write hashes and manifest; from here on the release is finished."""
    method = wanted.method
    commitment, seed = _public(secret)
    done: Iterable[tuple[str, str]] = (
        (entry.output, entry.output_sha256 or "") for entry in ledger.entries("done", present=False)
    )
    with _writing_to(places.destination):
        _refuse_unlisted_pictures(wanted, places, ledger)
        if isinstance(method, Synthesiser):
            from veilkit.pipeline.synthesis import write_soft_labels

            labels = write_soft_labels(method, ledger, secret, wanted.names, places.destination, places.scratch)
            done = chain(done, [labels])
        draft = places.scratch / SUMS
        sums = write_sums(draft, done)
        draft.replace(places.destination / SUMS)
        manifest = Manifest(
            veilkit=__version__,
            method=method.name,
            config=method.public_config(),
            expert_sha256=method.expert_sha256,
            key_commitment=commitment,
            seed=seed,
            reproducible_by="the key's holder" if secret.seed is None else "anyone",
            names=wanted.names,
            image_format=wanted.files.form,
            sound=wanted.video.sound if ledger.videos() else None,
            parts="people" if isinstance(method, ChangesParts) and method.parts() == "people" else None,
            sealed_recipients=len(wanted.recipients) or None,
            files=ledger.count("done", present=False),
            sums_sha256=sums,
        )
        os.sync()  # a power cut must not leave a manifest over pictures that the disk does not have yet
        write_atomically(places.destination / MANIFEST, manifest.text().encode(), places.scratch, durable=True)
        clear_scratch(places.scratch)


_NAMED = 3  # files that an error names


def refuse_unlisted(release: Path, belongs: Callable[[str], bool], *, finished: bool) -> None:
    """Raise where the folder holds anything but regular files that belong to the release, and their folders.

    finished: no picture is still to come, so that no folder may be empty either.
    """
    named: list[str] = []
    count = 0
    for path, is_file in _contents(release):
        if not (belongs(path) if is_file else path.endswith("/") and not finished):
            count += 1
            if len(named) < _NAMED:
                named.append(repr(path))
    if not count:
        return
    more = f" and {count - len(named)} more" if count > len(named) else ""
    raise DestinationError(
        f"{release} holds files that are not of this release: {', '.join(named)}{more}. Move them away and run the "
        "same command again, or choose a new or empty folder"
    )


def _contents(release: Path) -> Iterator[tuple[str, bool]]:
    """Everything below a release but its scratch folder: relative path, and whether it is a regular file.

    Links are not followed. Folders count only where they are empty.
    """
    waiting = [""]
    while waiting:
        prefix = waiting.pop()
        with os.scandir(release / prefix) as entries:
            found = list(entries)
        if prefix and not found:
            yield prefix, False
        for entry in found:
            path = prefix + entry.name
            if entry.is_dir(follow_symlinks=False):
                if path != SCRATCH:
                    waiting.append(f"{path}/")
            else:
                yield path, entry.is_file(follow_symlinks=False)
