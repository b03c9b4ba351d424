"""Videos as an audit takes them: faces of the originals followed, and cut out of both sides at some of their frames.

Each track is a person, with a folder of crops on either side; from there on it is an audit of pictures.
"""

from __future__ import annotations

import shutil
from collections import defaultdict
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from veilkit.audit.alarms.frames import bare_frames, frames_alarm
from veilkit.audit.options import AuditOptions
from veilkit.audit.result import Alarm
from veilkit.datasets.folder import Kind, survey
from veilkit.errors import DataError, RefusedImage, UsageError
from veilkit.experts.finders import FaceSettings, load_finder
from veilkit.media.arrays import as_tensor
from veilkit.media.tracks import Box, Seen, Shots, Tracker, TrackSettings
from veilkit.media.video import Frame, VideoLimits, open_clip, read_frames, thumbnail
from veilkit.pipeline.formats import is_video
from veilkit.pipeline.manifest import known_manifest
from veilkit.pipeline.pairing import choose_key, pair
from veilkit.progress import Progress

_A_SECOND = 5  # frames of an original that are searched
_CROPS, _FEWEST = 8, 2  # of a track
_LEAST = 24  # pixels: smaller faces say little to a recogniser
_WIDER = 0.3  # of a face's sides, beyond each edge
_LIMITS = VideoLimits()


@contextmanager
def faces_of_videos(options: AuditOptions) -> Iterator[AuditOptions]:
    """The options of an audit of the faces in both folders' videos, whose crops are gone when it ends."""
    folder = options.destination / "frames"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True, mode=0o700)
    try:
        originals, protected = (folder / name for name in ("originals", "protected"))
        alarms = _cut(options, originals, protected)
        yield replace(
            options, originals=originals, protected=protected, labels="folder", key=None, seed=None,
            out=options.destination, videos=False, alarms=alarms,
        )  # fmt: skip
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _cut(options: AuditOptions, originals: Path, protected: Path) -> tuple[Alarm, ...]:
    """Write the crops of both sides; what alarms at the videos themselves."""
    sources = Path(options.originals).resolve(), Path(options.protected).resolve()
    before, after = (_videos(source) for source in sources)
    key, notes = choose_key(
        sources[1], known_manifest(sources[1])[0], None if options.key is None else Path(options.key), options.seed
    )
    pairing = pair(before, after, key, notes)
    if not pairing.pairs:
        raise DataError(
            f"none of {len(before)} videos below {sources[0]} could be paired with {len(after)} below {sources[1]}"
            + "".join(f"; {note}" for note in pairing.notes)
        )
    tracks = bare = 0
    with Progress(len(pairing.pairs), "cutting faces out of videos") as progress:
        for number, (one, other) in enumerate(pairing.pairs):
            try:
                chosen = _followed(sources[0] / one)
                for side, file in ((originals, sources[0] / one), (protected, sources[1] / other)):
                    _write_crops(file, chosen, side, f"video{number:04}")
                bare += bare_frames(sources[0] / one, sources[1] / other, _LIMITS)
            except RefusedImage as refusal:
                raise DataError(f"a video cannot be read: {refusal.reason}") from None
            tracks += len(chosen)
            progress.advance()
    if not tracks:
        raise DataError("no face was found in the originals' videos: there is nothing to audit")
    return frames_alarm(bare, len(pairing.pairs))


def _videos(folder: Path) -> list[str]:
    found = [path for path, kind in survey(folder) if kind is Kind.other and is_video(folder / path)]
    if not found:
        raise UsageError(f"there are no videos below {folder}: leave --videos out to audit pictures")
    return sorted(found)


def _followed(file: Path) -> dict[int, list[tuple[float, Box]]]:
    """Of each face of a video some sights: seconds, and the box in shares of the frame's sides."""
    finder, clip, shots = load_finder(FaceSettings().finder), open_clip(file, _LIMITS), Shots()
    step = max(1, round(float(clip.rate) / _A_SECOND))
    tracker = Tracker(TrackSettings(gap=_A_SECOND, tail=0, around=0))
    seen: dict[int, list[tuple[float, Box]]] = defaultdict(list)
    held: list[tuple[float, list[Seen]]] = []

    def note(late: int) -> None:
        for track, each in tracker.covered(late):
            if any(each.box == known.box for known in held[late][1]):
                seen[track].append((held[late][0], _shares(each.box, clip.width, clip.height)))

    for frame in read_frames(clip, _LIMITS):
        shot = shots.number(thumbnail(frame.pixels))
        if frame.number % step or not frame.whole:
            continue
        boxes = finder.detect(as_tensor(frame.pixels)[None])[0].boxes.tolist()
        found = [Seen((box[0], box[1], box[2], box[3])) for box in boxes if _side(box) >= _LEAST]
        tracker.add(found, shot)
        held.append((float(frame.time * clip.time_base), found))
        if len(held) > tracker.settings.ahead:
            note(len(held) - 1 - tracker.settings.ahead)
    for late in range(max(0, len(held) - tracker.settings.ahead), len(held)):
        note(late)
    return {
        track: [sights[int(place)] for place in np.linspace(0, len(sights) - 1, min(_CROPS, len(sights))).round()]
        for track, sights in seen.items()
        if len(sights) >= _FEWEST
    }


def _write_crops(file: Path, chosen: dict[int, list[tuple[float, Box]]], out: Path, name: str) -> None:
    """Cut the chosen sights out of a video, at the frame that is shown at each time."""
    clip = open_clip(file, _LIMITS)
    due = sorted((second, track, box) for track, sights in chosen.items() for second, box in sights)
    last: Frame | None = None
    for frame in read_frames(clip, _LIMITS):
        begun = float(frame.time * clip.time_base)
        while due and last is not None and due[0][0] < begun - 1e-3:
            _write_crop(last.pixels, due.pop(0), out, name)
        last = frame
    while due and last is not None:
        _write_crop(last.pixels, due.pop(0), out, name)


def _write_crop(pixels: NDArray[np.uint8], sight: tuple[float, int, Box], out: Path, name: str) -> None:
    second, track, (left, top, right, bottom) = sight
    height, width = pixels.shape[:2]
    wide, high = _WIDER * (right - left), _WIDER * (bottom - top)
    rows = slice(max(0, round((top - high) * height)), max(0, round((bottom + high) * height)))
    columns = slice(max(0, round((left - wide) * width)), max(0, round((right + wide) * width)))
    folder = out / f"{name}-track{track:04}"
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    Image.fromarray(pixels[rows, columns]).save(folder / f"{round(1000 * second):09}.png")


def _side(box: Sequence[float]) -> float:
    return min(box[2] - box[0], box[3] - box[1])


def _shares(box: Box, width: int, height: int) -> Box:
    return box[0] / width, box[1] / height, box[2] / width, box[3] / height
