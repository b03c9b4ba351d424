"""Protect a folder: scan, group, work, record, and write the manifest last."""

from __future__ import annotations

import sqlite3
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any, get_args

from veilkit.datasets.labels import labeller
from veilkit.errors import ConfigError, DestinationError, UsageError
from veilkit.key import Key, read_or_create_key
from veilkit.media.reading import Limits
from veilkit.media.shape import Shape
from veilkit.media.writing import SUFFIX, Format
from veilkit.methods import METHODS, Item, Method, Synthesiser, bind
from veilkit.pipeline.engines.local import LocalEngine
from veilkit.pipeline.enrolment import enrol
from veilkit.pipeline.ledger import Entry, Ledger
from veilkit.pipeline.manifest import MANIFEST
from veilkit.pipeline.naming import Names
from veilkit.pipeline.places import Places, find_places
from veilkit.pipeline.release import Wanted, close_release, open_release
from veilkit.pipeline.sealed import close_sealed, open_sealed, recipients_for
from veilkit.pipeline.synthesis import grouped_tasks
from veilkit.pipeline.work import Job, Task, item_name
from veilkit.progress import Progress


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a run did. `refused` counts pictures by reason; `refusals` is the private list that names them.

    synthetic: the pictures belong to no original; `passed_over` then counts what shows nobody whom the method knows.
    missed: protected pictures for which the method missed the limit that it sets itself.
    told: what the method reports that the owner must know (a face that was hidden, a picture without any), and of how
    many pictures; `told_list` is the private list that names them.
    faces: of a method on faces, how many were `found`, of these `changed` and `hidden`, and how many `doubtful`
    regions were hidden besides; `faces_list` is the private list of these counts of each picture.
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
    told: Mapping[str, int] = field(default_factory=dict)
    told_list: Path | None = None
    faces: Mapping[str, int] = field(default_factory=dict)
    faces_list: Path | None = None


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
    shape: Shape | None = None,
) -> Outcome:
    """Protect every picture below `source` and write the release to `destination`.

    method: a name of the table of methods (with `preset` and `settings`), or a method of your own.
    model: the file of a method that has learned something (`veilkit fit`).
    key: a secret key file, made if absent; by default `DESTINATION.private/key`. seed: a public seed in its place.
    names: "pseudonyms", or "kept" for the pictures' own paths. labels: who is in a picture (see `datasets.labels`).
    workers: processes to work in; 0 works in this one.
    seal_to: age recipients (`age1...`, or files of them) to whom each original is sealed, in `DESTINATION.sealed`.
    limits: what is read and what may be spent on it. shape: a common size of the pictures and of their files.

    A run that was stopped goes on when it is called again; what is done and unchanged is not done again. Pictures
    that cannot be read are refused one by one, and the rest is done.
    """
    chosen = _method(method, preset, settings, model)
    chosen.check()
    recipients = recipients_for(chosen, seal_to)
    places = find_places(Path(source), Path(destination), key, seed, sealing=bool(recipients))
    if names not in get_args(Names) or image_format not in SUFFIX or workers < 0:
        raise ConfigError("names must be pseudonyms or kept, image_format png or jpeg, and workers at least 0")
    labeller(labels, places.source)  # before anything is made on disk
    secret, new_key = _secret(places, seed)
    shape = _shape(shape or Shape(), chosen, image_format)
    wanted = Wanted(chosen, image_format, names, labels, recipients, shape)
    try:
        with Ledger(places.ledger_file(secret)) as ledger, open_release(wanted, places, ledger, secret):
            sealed = open_sealed(places.sealed, ledger, recipients)
            passed_over = enrol(wanted, places, ledger, secret)
            (places.destination / MANIFEST).unlink(missing_ok=True)  # it stands only in a finished release
            job = Job(
                chosen, secret.randomness, places.source, places.destination, places.scratch, image_format,
                limits or Limits(), sealed, shape,
            )  # fmt: skip
            _work(job, ledger, workers)
            if sealed is not None:
                close_sealed(sealed, ledger)
            close_release(wanted, places, ledger, secret)
            refused = Counter(reason.partition(":")[0] for _, reason in ledger.refusals())
            refusals = ledger.file.with_suffix(".refused.csv")
            ledger.write_refusals(refusals) if refused else refusals.unlink(missing_ok=True)
            told, told_list = ledger.told(), ledger.file.with_suffix(".told.csv")
            ledger.write_told(told_list) if told else told_list.unlink(missing_ok=True)
            faces, faces_list = ledger.faces(), ledger.file.with_suffix(".faces.csv")
            ledger.write_faces(faces_list) if faces else faces_list.unlink(missing_ok=True)
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
                told,
                told_list if told else None,
                faces,
                faces_list if faces else None,
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


def _shape(shape: Shape, method: Method[Any], image_format: Format) -> Shape:
    """The shape, unless it does not go with the method or the format."""
    if shape.size is not None and isinstance(method, Synthesiser):
        raise UsageError(f"{method.name} makes pictures of one size anyway: leave the size out")
    if shape.even_files and image_format != "png":
        raise UsageError("only PNG files can be made alike in size: leave that out, or choose png")
    return shape


def _secret(places: Places, seed: int | None) -> tuple[Key, bool]:
    if seed is not None:
        return Key.from_seed(seed), False
    assert places.key_file is not None
    return read_or_create_key(places.key_file)


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
        changed = ledger.record(entries)
        progress.advance(len(entries), kept=len(entries) - changed)

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
