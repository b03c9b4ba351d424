"""A run of `protect`: scan, group, work, record, and write the manifest last."""

from __future__ import annotations

import os
import shutil
import sqlite3
from collections import Counter
from collections.abc import Callable, Iterator
from functools import partial
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

from veilkit.configs import with_settings
from veilkit.errors import DataError, DestinationError, UsageError
from veilkit.key import Key, read_or_create_key
from veilkit.media.shape import Shape
from veilkit.methods import ChangesFaces, ChangesParts, Item, Method, Mixes, Synthesiser, bind
from veilkit.methods.table import configured
from veilkit.pipeline.engines.local import LocalEngine
from veilkit.pipeline.enrolment import enrol
from veilkit.pipeline.formats import is_video
from veilkit.pipeline.job import Job, Task, item_name
from veilkit.pipeline.ledger import Entry, Ledger
from veilkit.pipeline.manifest import MANIFEST
from veilkit.pipeline.options import ProtectOptions
from veilkit.pipeline.places import Places, find_places
from veilkit.pipeline.protect import Outcome
from veilkit.pipeline.release import Wanted, close_release, open_release
from veilkit.pipeline.sealing.folder import close_sealed, open_sealed, recipients_for
from veilkit.progress import Progress

if TYPE_CHECKING:
    from veilkit.media.boxes import Boxes


def run_protect(options: ProtectOptions) -> Outcome:
    """Make the release that the options ask for, which have been checked; `protect` says how."""
    chosen = chosen_method(options)
    recipients = recipients_for(chosen, options.seal_to)
    places = find_places(
        options.source, Path(options.destination), options.key, options.seed, sealing=bool(recipients)
    )
    shape = _shape(options.shape, chosen)
    secret, new_key = secret_of(places, options.seed)
    wanted = Wanted(
        chosen, options.files(chosen), options.form_of_names, options.labels, recipients, shape, options.video
    )
    try:
        with Ledger(places.ledger_file(secret)) as ledger, open_release(wanted, places, ledger, secret):
            sealed = open_sealed(places.sealed, ledger, recipients)
            passed_over = enrol(wanted, places, ledger, secret)
            (places.destination / MANIFEST).unlink(missing_ok=True)  # it stands only in a finished release
            if options.boxes is not None:
                ledger.keep_boxes(drawn_boxes(options, places))
            shown = ledger.file.with_suffix(".shown")
            if isinstance(chosen, ChangesParts):
                shown.mkdir(mode=0o700, exist_ok=True)
            job = Job(
                chosen, secret.randomness, places.source, places.destination, places.scratch, wanted.files,
                options.limits, sealed, shape, ledger.file.with_suffix(".parts"), options.video, options.video_limits,
                ledger.boxes(), shown if isinstance(chosen, ChangesParts) else None,
            )  # fmt: skip
            _work(job, ledger, options.processes)
            if job.parts is not None:  # what is left of finished videos
                shutil.rmtree(job.parts, ignore_errors=True)
            if sealed is not None:
                close_sealed(sealed, ledger)
            close_release(wanted, places, ledger, secret)
            refused = Counter(reason.partition(":")[0] for _, reason in ledger.refusals())
            refusals = ledger.file.with_suffix(".refused.csv")
            ledger.write_refusals(refusals) if refused else refusals.unlink(missing_ok=True)
            told, told_list = ledger.told(), ledger.file.with_suffix(".told.csv")
            ledger.write_told(told_list) if told else told_list.unlink(missing_ok=True)
            review = ledger.file.with_suffix(".review.html")
            if isinstance(chosen, ChangesParts) and not isinstance(chosen, Mixes) and shape.size is None:
                from veilkit.pipeline.review.page import review_run

                review_run(review, ledger, places, shown, chosen.name)
            else:
                review.unlink(missing_ok=True)
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
                ledger.videos(),
                review if review.is_file() else None,
                options.parts or "faces",
            )
    except OSError as error:
        raise DestinationError(f"the run cannot go on: {error.strerror}") from None
    except sqlite3.DatabaseError as error:
        raise DestinationError(f"the ledger in {places.private} cannot be written: {error}") from None


def chosen_method(options: ProtectOptions) -> Method[Any]:
    """The method that the options ask for, which has been checked."""
    method, settings = options.method, dict(options.settings or {})
    if options.parts is not None:
        from veilkit.methods.whole_pictures import PeopleInPictures, split_settings

        search, settings = split_settings(settings)
    if isinstance(method, str):
        method = configured(method, options.preset, settings, options.model)
    if options.parts is not None:
        method = PeopleInPictures(
            method, with_settings(PeopleInPictures.default, search), boxed=options.boxes is not None
        )
    if options.on_doubt is not None:
        if not isinstance(method, ChangesParts):
            raise UsageError(f"{method.name} looks for no faces or people: leave on_doubt out")
        method = method.reconfigured(None, {"on_doubt": options.on_doubt})
    method.check()
    if isinstance(method, ChangesFaces) and (options.spare or options.only_person):
        return method.for_people(*([Path(each) for each in some] for some in (options.spare, options.only_person)))
    return method


def drawn_boxes(options: ProtectOptions, places: Places) -> Boxes:
    """The boxes of a file by the paths of the source's pictures; raises for boxes of pictures that are not in it.

    A box that does not say what is to happen in it is hidden, as a missed face, or protected, as a person.
    """
    from veilkit.media.boxes import read_boxes

    assert options.boxes is not None
    drawn = dict(read_boxes(Path(options.boxes), "hide" if options.parts is None else "protect"))
    found = {}
    for path, _ in places.survey():
        if path in drawn and is_video(places.source / path):
            raise DataError("boxes are for pictures, but one of them names a video: leave that out")
        for name in (path, os.path.splitext(path)[0]):  # noqa: PTH122 - YOLO's files name pictures without suffix
            if name in drawn:
                found[path] = drawn.pop(name)
    if drawn:
        raise DataError(
            f"{len(drawn)} of {len(drawn) + len(found)} pictures with boxes are not below {places.source}: expected "
            "paths below it, as the review page writes them"
        )
    return found


def _shape(shape: Shape, method: Method[Any]) -> Shape:
    """The shape, unless it does not go with the method."""
    if shape.size is not None and isinstance(method, Synthesiser):
        raise UsageError(f"{method.name} makes pictures of one size anyway: leave the size out")
    return shape


def secret_of(places: Places, seed: int | None) -> tuple[Key, bool]:
    """The key of a run, and whether it was made now."""
    if seed is not None:
        return Key.from_seed(seed), False
    assert places.key_file is not None
    return read_or_create_key(places.key_file)


def _work(job: Job, ledger: Ledger, workers: int) -> None:
    with LocalEngine(job, workers) as engine:
        if isinstance(job.method, Synthesiser):
            from veilkit.pipeline.synthesis import grouped_tasks

            with Progress(ledger.count(), "synthesising") as progress:
                engine.run(grouped_tasks(ledger), _recorder(ledger, progress))
            return
        if isinstance(job.method, Mixes):
            checks = (Task((entry,), check=True) for entry in ledger.entries())
            with Progress(ledger.count(), "checking") as progress:
                engine.run(checks, _recorder(ledger, progress))
        with Progress(ledger.count(), "protecting") as progress:
            engine.say = partial(progress.advance, 0)
            engine.run(_tasks(job, ledger, progress), _recorder(ledger, progress))


def _recorder(ledger: Ledger, progress: Progress) -> Callable[[tuple[Entry, ...]], None]:
    def record(entries: tuple[Entry, ...]) -> None:
        changed = ledger.record(entries)
        progress.advance(len(entries), kept=len(entries) - changed)

    return record


def _tasks(job: Job, ledger: Ledger, progress: Progress) -> Iterator[Task]:
    """Pictures in the order of their names in the release, as many as the method likes, or groups that it mixes."""
    if not isinstance(job.method, Mixes):
        waiting = ledger.entries()
        while some := tuple(islice(waiting, job.method.at_once)):
            yield Task(some, apart=True)
        return
    entries = [entry for entry in ledger.entries() if entry.reason is None]
    progress.advance(ledger.count() - len(entries))
    items = [Item(item_name(entry.source, entry.source_sha256 or ""), entry.identity) for entry in entries]
    for group in job.method.groups(items, rng=bind(job.randomness, job.method)):
        yield Task(tuple(entries[index] for index in group))
