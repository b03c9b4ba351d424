"""Protect a folder: scan, group, work, record, and write the manifest last."""

from __future__ import annotations

import os
import shutil
import sqlite3
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, islice
from pathlib import Path
from typing import Any, get_args

from veilkit.datasets.folder import check_folder, walk
from veilkit.datasets.labels import labeller
from veilkit.errors import ConfigError, DataError, DestinationError, UsageError
from veilkit.methods import METHODS, Item, Method, Synthesiser, bind
from veilkit.pipeline.engines.local import LocalEngine
from veilkit.pipeline.key import Key, read_or_create_key
from veilkit.pipeline.ledger import Entry, Ledger
from veilkit.pipeline.manifest import MANIFEST, SUMS, Manifest, write_sums
from veilkit.pipeline.naming import SCRATCH, Names, kept_names, pseudonyms
from veilkit.pipeline.reading import Limits
from veilkit.pipeline.sealed import (
    check_sealed,
    check_sealed_name,
    close_sealed,
    open_sealed,
    recipients_for,
    sealed_beside,
)
from veilkit.pipeline.synthesis import count_people, grouped_tasks, planned, write_soft_labels
from veilkit.pipeline.work import Job, Task, item_name
from veilkit.pipeline.writing import SUFFIX, Format, write_atomically
from veilkit.progress import Progress
from veilkit.version import __version__


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a run did. `refused` counts pictures by reason; `refusals` is the private list that names them.

    synthetic: the pictures belong to no original; `passed_over` then counts what shows nobody whom the method knows.
    missed: protected pictures for which the method missed the limit that it sets itself.
    sealed: the folder of sealed originals, if any, and `recipients`, how many keys can open them.
    """

    destination: Path
    key_file: Path | None
    new_key: bool
    ledger: Path
    protected: int
    passed_over: int
    gone: int
    refused: Mapping[str, int]
    refusals: Path | None
    synthetic: bool = False
    missed: int = 0
    sealed: Path | None = None
    recipients: int = 0


@dataclass(frozen=True, slots=True)
class _Places:
    """Where a run reads and writes."""

    source: Path
    destination: Path
    private: Path
    sealed: Path
    key_file: Path | None

    @property
    def scratch(self) -> Path:
        return self.destination / SCRATCH


def protect(
    source: str | Path,
    destination: str | Path,
    method: str | Method[Any],
    *,
    preset: str | None = None,
    settings: Mapping[str, object] | None = None,
    key: str | Path | None = None,
    seed: int | None = None,
    names: Names = "pseudonyms",
    labels: str = "auto",
    image_format: Format = "png",
    workers: int = 0,
    limits: Limits | None = None,
    model: str | Path | None = None,
    seal_to: Sequence[str | Path] = (),
) -> Outcome:
    """Protect every picture below `source` and write the release to `destination`.

    method: a name of the table of methods (with `preset` and `settings`), or a method of your own.
    model: the file of a method that has learned something (`veilkit fit`).
    key: a secret key file, made if absent; by default `DESTINATION.private/key`. seed: a public seed in its place.
    names: "pseudonyms", or "kept" for the pictures' own paths. labels: who is in a picture (see `datasets.labels`).
    workers: processes to work in; 0 works in this one.
    seal_to: age recipients (`age1...`, or files of them) to whom each original is sealed, in `DESTINATION.sealed`.

    A run that was stopped goes on when it is called again; what is done and unchanged is not done again. Pictures
    that cannot be read are refused one by one, and the rest is done.
    """
    chosen = _method(method, preset, settings, model)
    chosen.check()
    recipients = recipients_for(chosen, seal_to)
    places = _places(Path(source), Path(destination), key, seed, sealing=bool(recipients))
    if names not in get_args(Names) or image_format not in SUFFIX or workers < 0:
        raise ConfigError("names must be pseudonyms or kept, image_format png or jpeg, and workers at least 0")
    labeller(labels, places.source)  # before anything is made on disk
    secret, new_key = _secret(places, seed)
    try:
        with Ledger(_ledger_file(places, secret)) as ledger:
            _open_release(places, ledger, chosen, image_format, names, recipients)
            sealed = open_sealed(places.sealed, ledger, recipients)
            if isinstance(chosen, Synthesiser):
                passed_over = _enrol_synthetic(chosen, places, ledger, secret, names, labels, image_format)
            else:
                passed_over = _enrol(places, ledger, secret, names, labels, image_format, sealing=bool(recipients))
            (places.destination / MANIFEST).unlink(missing_ok=True)  # it stands only in a finished release
            job = Job(
                chosen, secret.randomness, places.source, places.destination, places.scratch, image_format,
                limits or Limits(), sealed,
            )  # fmt: skip
            _work(job, ledger, workers)
            if sealed is not None:
                close_sealed(sealed, ledger)
            _close_release(places, ledger, secret, chosen, image_format, names, recipients)
            refused = Counter(reason.partition(":")[0] for _, reason in ledger.refusals())
            refusals = ledger.file.with_suffix(".refused.csv")
            ledger.write_refusals(refusals) if refused else refusals.unlink(missing_ok=True)
            return Outcome(
                places.destination,
                places.key_file,
                new_key,
                ledger.file,
                ledger.count("done"),
                passed_over,
                ledger.gone(),
                dict(refused.most_common()),
                refusals if refused else None,
                isinstance(chosen, Synthesiser),
                ledger.missed(),
                sealed.folder if sealed else None,
                len(recipients),
            )
    except OSError as error:
        raise DestinationError(f"the run cannot go on: {error.strerror}") from None
    except sqlite3.DatabaseError as error:
        raise DestinationError(f"the ledger in {places.private} cannot be written: {error}") from None


def _method(
    method: str | Method[Any],
    preset: str | None,
    settings: Mapping[str, object] | None,
    model: str | Path | None,
) -> Method[Any]:
    if not isinstance(method, str):
        if preset is not None or settings or model is not None:
            raise UsageError("preset, settings and model go with a method's name; configure your own method before")
        return method
    kind = METHODS[method]
    if model is not None and not (kind.learns or kind.calibrates):
        raise UsageError(f"{method} learns nothing, so it takes no model; leave it out")
    if model is None and not kind.learns:
        return kind.configured(preset, settings)
    if model is None:
        raise UsageError(
            f"{method} must learn before it protects: `veilkit fit {method} DATA --out FILE` and --model"
        )
    return kind.load(Path(model)).reconfigured(preset, settings)


def _places(source: Path, destination: Path, key: str | Path | None, seed: int | None, *, sealing: bool) -> _Places:
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
    return _Places(source, destination, private, sealed, key_file)


def _secret(places: _Places, seed: int | None) -> tuple[Key, bool]:
    if seed is not None:
        return Key.from_seed(seed), False
    assert places.key_file is not None
    return read_or_create_key(places.key_file)


def _ledger_file(places: _Places, secret: Key) -> Path:
    """One ledger per key and destination, so that one key may serve many releases."""
    stem = places.key_file.name if places.key_file else "seed"
    return places.private / f"{stem}.{secret.randomness.tag('ledger', str(places.destination)).hex()[:12]}.ledger"


def _open_release(
    places: _Places,
    ledger: Ledger,
    method: Method[Any],
    image_format: Format,
    names: Names,
    recipients: tuple[str, ...],
) -> None:
    """Make the destination ready, or refuse it where it holds something else than this release."""
    facts = {"method": method.fingerprint(), "format": image_format, "names": names, "source": str(places.source)}
    before = {name: value for name, value in ledger.about().items() if name in facts}
    try:
        held = set(places.destination.iterdir()) if places.destination.exists() else set()
        empty = held <= {places.scratch}
        if not empty and before != facts:
            different = sorted(name for name in facts if before.get(name) != facts[name])
            what = (
                f"a release with another {', '.join(different)}" if before else "files that are not of this release"
            )
            raise DestinationError(f"{places.destination} holds {what}: choose a new or empty folder")
        check_sealed(places.sealed, ledger, recipients, same=before == facts)
        if before != facts:
            ledger.clear()
        ledger.describe(**facts)  # before anything is in the folder: a kill in between must not block a resume
        places.scratch.mkdir(parents=True, exist_ok=True)
        for leftover in places.scratch.iterdir():
            leftover.unlink(missing_ok=True)
    except OSError as error:
        raise DestinationError(f"{places.destination} cannot be written: {error.strerror}") from None


def _enrol(
    places: _Places, ledger: Ledger, secret: Key, names: Names, labels: str, image_format: Format, *, sealing: bool
) -> int:
    """Note every picture of the source in the ledger; returns how many other files were passed over."""
    label, suffix, passed_over = labeller(labels, places.source), SUFFIX[image_format], 0

    def pictures() -> Iterator[str]:
        nonlocal passed_over
        for path, is_image in walk(places.source):
            if is_image:
                yield path
            else:
                passed_over += 1

    name = pseudonyms(secret, suffix) if names == "pseudonyms" else kept_names(pictures(), suffix)
    passed_over = 0
    check = check_sealed_name if sealing else str
    ledger.enrol(Entry(path, check(name(path)), *label(path)) for path in pictures())
    if not ledger.count():
        raise DataError(f"there are no pictures below {places.source}")
    return passed_over


def _enrol_synthetic(
    method: Synthesiser[Any],
    places: _Places,
    ledger: Ledger,
    secret: Key,
    names: Names,
    labels: str,
    image_format: Format,
) -> int:
    """Note every picture that is to be made; returns how many files of the source were passed over."""
    counts, unknown, others = count_people(places.source, labels)
    if not counts:
        raise DataError(
            f"{method.name} makes pictures of people, but nobody is labelled below {places.source}: "
            "say who is in a picture with labels"
        )
    rng = bind(secret.randomness, method)
    ledger.enrol(planned(method, counts, secret, rng, names, SUFFIX[image_format]))
    known = set(method.classes)
    strangers = sum(count for person, count in counts.items() if person not in known)
    return unknown + others + strangers


def _work(job: Job, ledger: Ledger, workers: int) -> None:
    with LocalEngine(job, workers) as engine:
        if isinstance(job.method, Synthesiser):
            with Progress(ledger.count(), "synthesising") as progress:
                engine.run(grouped_tasks(ledger), _recorder(ledger, progress))
            return
        if job.method.mixes:
            checks = (Task((entry,), check=True) for entry in ledger.entries())
            with Progress(ledger.count(), "checking") as progress:
                engine.run(checks, _recorder(ledger, progress))
        with Progress(ledger.count(), "protecting") as progress:
            engine.run(_tasks(job, ledger, progress), _recorder(ledger, progress))


def _recorder(ledger: Ledger, progress: Progress) -> Callable[[tuple[Entry, ...]], None]:
    def record(entries: tuple[Entry, ...]) -> None:
        ledger.record(entries)
        progress.advance(len(entries))

    return record


def _tasks(job: Job, ledger: Ledger, progress: Progress) -> Iterator[Task]:
    """Pictures in the order of their names in the release, as many as the method likes, or groups that it mixes."""
    if not job.method.mixes:
        waiting = ledger.entries()
        while some := tuple(islice(waiting, job.method.at_once)):
            yield Task(some, apart=True)
        return
    entries = [entry for entry in ledger.entries() if entry.reason is None]
    progress.advance(ledger.count() - len(entries))
    items = [Item(item_name(entry.source, entry.source_sha256 or ""), entry.identity) for entry in entries]
    for group in job.method.groups(items, rng=bind(job.randomness, job.method)):
        yield Task(tuple(entries[index] for index in group))


def _close_release(
    places: _Places,
    ledger: Ledger,
    secret: Key,
    method: Method[Any],
    image_format: Format,
    names: Names,
    recipients: tuple[str, ...],
) -> None:
    """Write hashes and manifest; from here on the release is finished."""
    done: Iterable[tuple[str, str]] = (
        (entry.output, entry.output_sha256 or "") for entry in ledger.entries("done", present=False)
    )
    try:
        if isinstance(method, Synthesiser):
            labels = write_soft_labels(method, ledger, secret, names, places.destination, places.scratch)
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
            names=names,
            image_format=image_format,
            sealed_recipients=len(recipients) or None,
            files=ledger.count("done", present=False),
            sums_sha256=sums,
        )
        os.sync()  # a power cut must not leave a manifest over pictures that the disk does not have yet
        write_atomically(places.destination / MANIFEST, manifest.text().encode(), places.scratch, durable=True)
        shutil.rmtree(places.scratch)
    except OSError as error:
        raise DestinationError(f"{places.destination} cannot be written: {error.strerror}") from None
