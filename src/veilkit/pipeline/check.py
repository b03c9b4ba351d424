"""Look before anything is written: what a folder holds, which methods fit it, and what a few pictures become."""

from __future__ import annotations

import json
import shutil
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from veilkit.datasets.folder import Kind
from veilkit.datasets.labels import labeller
from veilkit.display import counted
from veilkit.errors import DataError, MissingExtraError, UsageError
from veilkit.media.reading import Limits
from veilkit.media.writing import Files
from veilkit.methods import LOOKS_FOR_FACES, METHODS, READS_ALONE, ChangesFaces, Learns, Method, Mixes, Synthesiser
from veilkit.pipeline.engines.local import LocalEngine
from veilkit.pipeline.enrolment import release_names
from veilkit.pipeline.formats import is_video, why_refused
from veilkit.pipeline.job import Job, Task
from veilkit.pipeline.ledger import Entry
from veilkit.pipeline.options import ProtectOptions
from veilkit.pipeline.places import find_places
from veilkit.pipeline.review.page import reviewed, write_review
from veilkit.pipeline.run import chosen_method, drawn_boxes, secret_of
from veilkit.pipeline.sources import Source
from veilkit.progress import Progress
from veilkit.rng import Randomness

_LOOKED_AT = 50  # pictures in which faces are looked for, unless more are asked for
_CROP_ASPECT, _CROP_HEIGHT = (1.4, 4.0), 512  # of a crop of one standing person
_FACE_CROP = 512


@dataclass(frozen=True, slots=True)
class Fit:
    """A method that fits the pictures, and what it needs first."""

    name: str
    summary: str
    needs: str


@dataclass(frozen=True, slots=True)
class Checked:
    """What a source holds. refused: how many pictures cannot be read, by reason; `listed` names them.

    kind: photos, crops of people, or crops of faces. looked: in how many pictures faces were looked for; faces: how
    many were `found` there, and `doubtful` regions; without: pictures among them in which none was found. no_faces:
    why none were looked for, if so. people: how many the labels tell apart.
    """

    pictures: int
    others: int
    refused: Mapping[str, int]
    kind: str
    people: int
    looked: int = 0
    faces: Mapping[str, int] = field(default_factory=dict)
    without: int = 0
    no_faces: str = ""
    methods: tuple[Fit, ...] = ()
    listed: tuple[tuple[str, str], ...] = ()

    @property
    def readable(self) -> int:
        """How many pictures can be protected."""
        return self.pictures - sum(self.refused.values())

    def as_json(self, *, names: bool = False) -> dict[str, Any]:
        """For machines; with paths only where `names` are asked for."""
        plain = {name: getattr(self, name) for name in self.__slots__ if name not in ("methods", "listed")}
        methods = [{"name": each.name, "needs": each.needs} for each in self.methods]
        listed = {"listed": [list(each) for each in self.listed]} if names else {}
        return {**plain, "readable": self.readable, "methods": methods, **listed}


def check_source(
    named: str | Path | Sequence[str | Path], *, labels: str = "auto", look_at: int = _LOOKED_AT, workers: int = 0
) -> Checked:
    """Read every picture of a source, and look for faces in `look_at` of them, spread evenly. Writes nothing."""
    source, no_faces = Source.of(named), ""
    method: Method[Any] = METHODS[LOOKS_FOR_FACES]()
    try:
        method.check()
    except MissingExtraError as error:
        method, no_faces = METHODS[READS_ALONE](), str(error)
    job = Job(method, Randomness.from_seed(0), source.root, Path(), Path(), Files(), Limits())
    paths, others = _paths(source, method)
    chosen = set(_spread(paths, look_at)) if isinstance(method, ChangesFaces) else set()
    entries = _done(job, workers, [Task((Entry(path, path),), look=True, faces=path in chosen) for path in paths])
    refused = [(each.source, each.reason) for each in entries if each.reason is not None]
    reports = [json.loads(each.report) for each in entries if each.reason is None and each.report]
    seen = [report["counts"] for report in reports if "counts" in report]
    label = labeller(labels, source.root)
    people = {label(each.source)[0] for each in entries if each.reason is None} - {None}
    kind = _kind([report["size"] for report in reports])
    return Checked(
        len(paths),
        others,
        dict(Counter(reason.partition(":")[0] for _, reason in refused).most_common()),
        kind,
        len(people),
        len(seen),
        {name: sum(each.get(name, 0) for each in seen) for name in ("found", "doubtful")} if seen else {},
        sum(not each["found"] for each in seen),
        no_faces,
        tuple(_fits(kind, len(people), sum(report["frames"] > 1 for report in reports))),
        tuple(sorted(refused)),
    )


def preview(options: ProtectOptions, count: int) -> Path:
    """Protect a few pictures, spread evenly, into a private page; nothing is written to the destination."""
    options.check()
    method = chosen_method(options)
    if isinstance(method, Mixes | Synthesiser):
        raise UsageError(f"{method.name} makes no picture of one original alone, so there is no preview of it")
    places = find_places(options.source, Path(options.destination), options.key, options.seed, sealing=False)
    secret, _ = secret_of(places, options.seed)
    folder = places.private / "preview"
    shutil.rmtree(folder, ignore_errors=True)
    places.private.mkdir(mode=0o700, parents=True, exist_ok=True)  # with a seed, no key has made it
    for each in (folder, folder / "scratch", folder / "shown"):
        each.mkdir(mode=0o700)
    boxes = {} if options.boxes is None else drawn_boxes(options, places)
    job = Job(
        method, secret.randomness, places.source, folder, folder / "scratch", options.files(method), options.limits,
        None, options.shape, None, options.video, options.video_limits, boxes, folder / "shown",
    )  # fmt: skip
    name = release_names("pseudonyms", places, secret, options.files(method))
    paths, _ = _paths(Source(places.source, places.files), method)
    paths = [path for path in paths if not is_video(places.source / path)]
    if not paths:
        raise DataError(f"there are no pictures below {places.source}")
    made = _done(
        job, options.processes, [Task((Entry(each, name(each)),), apart=True) for each in _spread(paths, count)]
    )
    shown = [reviewed(each, places.source, folder, folder / "shown") for each in made if each.reason is None]
    refused = sum(each.reason is not None for each in made)
    return write_review(
        places.private / "preview.html",
        [each for each in shown if each is not None],
        method=f"preview of {method.name}",
        release="preview",
        summary=f"{counted(len(made) - refused, 'picture', 'pictures')} of {len(paths)}, protected for this page only"
        + (f"; {refused} more cannot be read" if refused else ""),
    )


def dry_run(options: ProtectOptions) -> Checked:
    """Read all that a run would read, with its limits, and check its options; nothing is written."""
    options.check()
    method = chosen_method(options)
    places = find_places(
        options.source, Path(options.destination), options.key, options.seed, sealing=bool(options.seal_to)
    )
    job = Job(method, Randomness.from_seed(0), places.source, Path(), Path(), Files(), options.limits)
    paths, others = _paths(Source(places.source, places.files), method)
    done = _done(job, options.processes, [Task((Entry(path, path),), look=True) for path in paths])
    refused = [(each.source, each.reason) for each in done if each.reason is not None]
    reasons = dict(Counter(reason.partition(":")[0] for _, reason in refused).most_common())
    return Checked(len(paths), others, reasons, "", 0, listed=tuple(sorted(refused)))


def _paths(source: Source, method: Method[Any]) -> tuple[list[str], int]:
    """What looks like a picture or a video, and how many other files there are."""
    paths, others = [], 0
    for path, kind in source.survey():
        if kind is Kind.picture or why_refused(source.root, path, method) or is_video(source.root / path):
            paths.append(path)
        else:
            others += 1
    return sorted(paths), others


def _spread(paths: Sequence[str], count: int) -> list[str]:
    """So many of the paths, evenly, from the first to the last."""
    count = min(count, len(paths))
    return [paths[round(place * (len(paths) - 1) / max(1, count - 1))] for place in range(count)]


def _done(job: Job, workers: int, tasks: Sequence[Task]) -> list[Entry]:
    done: list[Entry] = []

    def take(entries: tuple[Entry, ...]) -> None:
        done.extend(entries)
        progress.advance(len(entries))

    with LocalEngine(job, workers) as engine, Progress(len(tasks), "looking") as progress:
        engine.run(iter(tasks), take)
    return done


def _kind(sizes: Sequence[tuple[int, int]]) -> str:
    """What most of the pictures are."""
    low, high = _CROP_ASPECT
    people = sum(low <= tall / wide <= high and tall <= _CROP_HEIGHT for wide, tall in sizes)
    faces = sum(max(wide, tall) <= _FACE_CROP and 0.7 <= tall / wide < low for wide, tall in sizes)
    most = 0.9 * len(sizes)
    return (
        "crops of people" if people and people >= most else "crops of faces" if faces and faces >= most else "photos"
    )


def _fits(kind: str, people: int, moving: int) -> Iterator[Fit]:
    """The methods that fit pictures of a kind; what changes faces comes first for photos."""
    for name, method in sorted(METHODS.items(), key=lambda each: not issubclass(each[1], ChangesFaces)):
        faces, mixes = issubclass(method, ChangesFaces), issubclass(method, Mixes | Synthesiser)
        expert = getattr(method.default, "expert", None)
        for_crops = mixes or expert is not None or (issubclass(method, Learns) and not faces)
        if mixes and (kind == "photos" or people < 2 or moving):
            continue
        needs = "a model of its own (veilkit fit, --model)" if issubclass(method, Learns) else ""
        if expert is not None:
            needs = f"an expert for {expert} (--set expert=NAME: see veilkit experts list)"
        if faces and kind != "photos":
            needs = "; ".join(filter(None, (needs, f"--preset {'people' if kind == 'crops of people' else 'crops'}")))
        if kind == "photos" and for_crops:
            needs = "; ".join(
                filter(None, ("--parts people, and boxes of people or a finder (docs/protect.md)", needs))
            )
        yield Fit(name, method.summary, needs)
