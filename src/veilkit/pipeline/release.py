"""The released folder: made ready before the work, and closed with hashes and manifest after it."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from itertools import chain
from typing import Any

from veilkit.configs import differing
from veilkit.errors import DestinationError
from veilkit.key import Key
from veilkit.media.shape import Shape
from veilkit.media.writing import Format, write_atomically
from veilkit.methods import Method, Synthesiser
from veilkit.pipeline.ledger import Ledger
from veilkit.pipeline.manifest import MANIFEST, SUMS, Manifest, write_sums
from veilkit.pipeline.naming import Names
from veilkit.pipeline.places import Places
from veilkit.pipeline.sealed import check_sealed
from veilkit.pipeline.synthesis import write_soft_labels
from veilkit.version import __version__


@dataclass(frozen=True, slots=True)
class Wanted:
    """What a release is to be. recipients: to whom the originals are sealed, if to anybody."""

    method: Method[Any]
    image_format: Format
    names: Names
    labels: str
    recipients: tuple[str, ...]
    shape: Shape = field(default_factory=Shape)


def open_release(wanted: Wanted, places: Places, ledger: Ledger) -> None:
    """Make the destination ready, or refuse it where it holds something else than this release."""
    facts = {
        "method": wanted.method.fingerprint(),
        "format": f"{wanted.image_format}{wanted.shape}",
        "names": wanted.names,
        "source": str(places.source),
    }
    before = {name: value for name, value in ledger.about().items() if name in facts}
    try:
        held = set(places.destination.iterdir()) if places.destination.exists() else set()
        empty = held <= {places.scratch}
        if not empty and before != facts:
            what = f"a release with {_others(ledger.about(), facts, wanted)}" if before else (
                "files that are not of this release"
            )  # fmt: skip
            raise DestinationError(f"{places.destination} holds {what}: choose a new or empty folder")
        check_sealed(places.sealed, ledger, wanted.recipients, same=before == facts)
        if before != facts:
            ledger.clear()
        ledger.describe(
            **facts, settings=json.dumps(wanted.method.public_config())
        )  # before anything is in the folder: a kill in between must not block a resume
        places.scratch.mkdir(parents=True, exist_ok=True)
        for leftover in places.scratch.iterdir():
            leftover.unlink(missing_ok=True)
    except OSError as error:
        raise DestinationError(f"{places.destination} cannot be written: {error.strerror}") from None


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
    done: Iterable[tuple[str, str]] = (
        (entry.output, entry.output_sha256 or "") for entry in ledger.entries("done", present=False)
    )
    try:
        if isinstance(method, Synthesiser):
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
            key_commitment=secret.commitment() if secret.seed is None else None,
            seed=secret.seed,
            reproducible_by="the key's holder" if secret.seed is None else "anyone",
            names=wanted.names,
            image_format=wanted.image_format,
            sealed_recipients=len(wanted.recipients) or None,
            files=ledger.count("done", present=False),
            sums_sha256=sums,
        )
        os.sync()  # a power cut must not leave a manifest over pictures that the disk does not have yet
        write_atomically(places.destination / MANIFEST, manifest.text().encode(), places.scratch, durable=True)
        shutil.rmtree(places.scratch)
    except OSError as error:
        raise DestinationError(f"{places.destination} cannot be written: {error.strerror}") from None
