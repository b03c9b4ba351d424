"""A video of the source to a protected one: two readers of the file, one some frames ahead, which finds and follows.

Faces are known before they are first seen, and after. Both readers leave what they have done in blocks of frames, in
a private folder beside the ledger, from which a run that was killed goes on to the same bytes. Nothing is held but
the frames at hand and the tracks near them.
"""

from __future__ import annotations

import json
import threading
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from itertools import count, islice
from pathlib import Path
from queue import Empty, Full, Queue
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from veilkit.errors import RefusedImage, VeilkitError
from veilkit.media.arrays import as_tensor
from veilkit.media.tracks import Seen, Shots, Tracker, TrackSettings
from veilkit.media.video import Clip, Frame, read_frames, thumbnail, write_part
from veilkit.media.writing import to_pixels
from veilkit.methods import FollowsFaces, Method
from veilkit.methods.base import FrameLook
from veilkit.pipeline.engines.bounds import renew_processor_seconds
from veilkit.progress import Say
from veilkit.rng import Randomness
from veilkit.types import ImageBatch, PictureReport

if TYPE_CHECKING:
    from veilkit.pipeline.job import Job

BLOCK = 100
"""Frames in a part."""
Tracks: TypeAlias = list[tuple[int, Seen]]
_GAP, _TAIL = 2.0, 0.5  # seconds: see TrackSettings
_FULL, _TWICE = 0.2, 2.0  # seconds between two looks at a frame in full size, and of the second finder
_EVERY = 0.5  # seconds between two words of progress
_WAITING = 64  # frames that the one reader may be ahead of what the other needs
SOUND_DROPPED = "its sound was left out, since voices tell who somebody is (--sound keep keeps it)"
SOUND_KEPT = "its sound was kept: voices tell who somebody is"
NO_FACE_HIDDEN = "a video in which no face was found: pixelated as a whole"
NO_FACE_KEPT = "a video in which no face was found: released as it is"
HIDDEN_TRACKS = "a face in a video that could not be changed, or that only the second finder saw: hidden"
SPARED_TRACKS = "a face in a video of a person who is to be spared: left as it is where it was known for sure"
DOUBTFUL_TRACKS = "a region of a video that may be a face: hidden"


@dataclass(slots=True)
class VideoBlocks:
    """One video at work."""

    job: Job
    method: Method[Any]
    rng: Randomness
    item: str
    folder: Path
    clip: Clip
    say: Say
    plain: bool = False  # no face was found at all, and so all of it is hidden
    said: float = 0.0

    @property
    def shown(self) -> Clip:
        """The clip as it comes out."""
        if self.job.shape.size is None:
            return self.clip
        width, height = self.job.shape.size
        return replace(self.clip, width=width, height=height, aspect=type(self.clip.aspect)(1))

    def make(self) -> PictureReport:
        """Find faces and write all parts; go on where an earlier run was stopped."""
        self._write()
        report = self._report()
        if isinstance(self.method, FollowsFaces) and not report.details["counts"]["found"]:
            black = np.zeros((8, 8, 3), np.uint8)
            self.plain = self.method.faceless(black) is not None
            if self.plain:
                self._write()
            notes = (*report.notes, NO_FACE_HIDDEN if self.plain else NO_FACE_KEPT)
            report = replace(report, notes=tuple(sorted(notes)))
        return report

    def parts(self) -> list[Path]:
        """The parts that are done, in their order."""
        return list(_numbered(self.folder, "plain" if self.plain else "part", ".nut"))

    def _write(self) -> None:
        done = len(self.parts())
        start = done * BLOCK
        if done and json.loads(self._facts(done - 1).read_text())["frames"] < BLOCK:
            return
        painted = self._painted(start)
        for number in count(done):
            part = self.folder / f"{'plain' if self.plain else 'part'}-{number:06}.nut"
            facts: dict[str, Any] = {"tracks": {}, "damaged": []}
            draft = part.with_suffix(".draft")
            frames = self._noted(islice(painted, BLOCK), facts)
            facts["frames"] = write_part(draft, frames, self.shown, self.job.video)
            if not facts["frames"] and number:
                draft.unlink(missing_ok=True)
                return
            if not facts["frames"]:
                raise RefusedImage("a video of which no frame can be read")
            _write_whole(self._facts(number), json.dumps(facts))
            draft.replace(part)
            renew_processor_seconds()
            if facts["frames"] < BLOCK:
                return

    def _facts(self, number: int) -> Path:
        return self.folder / f"{'plain' if self.plain else 'part'}-{number:06}.json"

    def _noted(self, painted: Iterator[tuple[Frame, dict[int, str]]], facts: dict[str, Any]) -> Iterator[Frame]:
        """The frames of a part; what became of each track in them goes into `facts`."""
        for frame, outcomes in painted:
            seconds = round(float(frame.time * self.clip.time_base), 3)
            if not frame.whole:
                facts["damaged"].append(seconds)
            for number, outcome in outcomes.items():
                track = facts["tracks"].setdefault(str(number), {"from": seconds, "outcomes": {}})
                track["to"] = seconds
                track["outcomes"][outcome] = track["outcomes"].get(outcome, 0) + 1
            self._tell(frame.number + 1)
            yield frame

    def _tell(self, done: int) -> None:
        if time.monotonic() - self.said >= _EVERY:
            self.said = time.monotonic()
            self.say(f"a video at frame {done:,}" + f" of {self.clip.frames:,}" * (self.clip.frames >= done))

    def _painted(self, start: int) -> Iterator[tuple[Frame, dict[int, str]]]:
        """Protected frames from the one of that number on, and what became of each track."""
        reader = replace(self.clip, damaged=[])
        frames = read_frames(reader, self.job.video_limits, start=start)
        if self.plain:
            assert isinstance(self.method, FollowsFaces)
            for frame in frames:
                pixels = self.method.faceless(self.job.shape.fitted(frame.pixels))
                assert pixels is not None
                yield replace(frame, pixels=pixels), {}
        elif isinstance(self.method, FollowsFaces):
            with _ahead(self._tracks()) as tracks:
                for frame, covered in zip(frames, islice(tracks, start, None), strict=True):
                    pixels = self.job.shape.fitted(frame.pixels)
                    if not frame.whole:  # black: there is nothing to protect
                        yield replace(frame, pixels=pixels), {}
                        continue
                    pixels, outcomes = self.method.treated(pixels, covered, self.item, rng=self.rng)
                    yield replace(frame, pixels=pixels), outcomes
        else:
            for frame in frames:
                yield replace(frame, pixels=self._protected(self.job.shape.fitted(frame.pixels))), {}

    def _protected(self, pixels: NDArray[np.uint8]) -> NDArray[np.uint8]:
        """A whole frame protected. All frames have one name: noise that differs could be averaged away."""
        images = self.method.protect(ImageBatch(as_tensor(pixels)[None], (self.item,)), rng=self.rng).images
        assert images is not None
        return to_pixels(images[0])

    def _tracks(self) -> Iterator[Tracks]:
        """For each frame what is covered in it."""
        rate = min(60.0, max(5.0, float(self.clip.rate)))
        settings = TrackSettings(
            gap=round(_GAP * rate), tail=round(_TAIL * rate), doubtful_tail=max(1, round(_FULL * rate))
        )
        tracker, number = Tracker(settings), -1
        for number, (seen, shot) in enumerate(self._sights(rate)):
            tracker.add(seen, shot)
            if number >= settings.ahead:
                yield tracker.covered(number - settings.ahead)
        for late in range(max(0, number + 1 - settings.ahead), number + 1):
            yield tracker.covered(late)

    def _sights(self, rate: float) -> Iterator[tuple[list[Seen], int]]:
        """For each frame what is seen in it, and its shot: from the blocks of an earlier run, and then anew.

        The second finder looks at the first frame of a shot, then now and then; and quickly each time that a frame
        is searched in full size, while it sees what the first one misses.
        """
        done, shots, due, missed = 0, Shots(), 0, False
        full, twice = (max(1, round(seconds * rate)) for seconds in (_FULL, _TWICE))
        for file in _numbered(self.folder, "seen", ".json"):
            block = json.loads(file.read_text())
            for seen, shot in block["frames"]:
                yield [_seen(each) for each in seen], shot
            shots, done = Shots.from_state(block["shots"]), done + 1
            due, missed = block["due"], block["missed"]
            if len(block["frames"]) < BLOCK:
                return
        assert isinstance(self.method, FollowsFaces)
        frames = read_frames(self.clip, self.job.video_limits, start=done * BLOCK)
        last = shots.last
        for number in count(done):
            held: list[tuple[list[Any], int]] = []
            for frame in islice(frames, BLOCK):
                pixels = self.job.shape.fitted(frame.pixels)
                shot = shots.number(thumbnail(pixels))
                look: FrameLook = "full" if frame.number % full == 0 else "small"
                if shot != last or (look == "full" and frame.number >= due):
                    look, due = "twice", frame.number + twice
                elif look == "full" and missed:
                    look = "again"
                seen = self.method.seen_in(pixels, look) if frame.whole else []
                if look in ("again", "twice"):
                    missed = any(each.certainty == 1 for each in seen)
                last = shot
                held.append(([_row(each) for each in seen], shot))
                yield [_seen(row) for row in held[-1][0]], shot
            block = {"frames": held, "shots": shots.state(), "due": due, "missed": missed}
            _write_whole(self.folder / f"seen-{number:06}.json", json.dumps(block))
            if len(held) < BLOCK:
                return

    def _report(self) -> PictureReport:
        """What became of the tracks of all parts, and what could not be read."""
        tracks: dict[str, dict[str, Any]] = {}
        damaged: list[float] = []
        frames = 0
        for number in range(len(self.parts())):
            facts = json.loads(self._facts(number).read_text())
            frames += facts["frames"]
            damaged += facts["damaged"]
            for name, track in facts["tracks"].items():
                known = tracks.setdefault(name, {**track, "outcomes": {}})
                known["to"] = track["to"]
                known["outcomes"] = dict(Counter(known["outcomes"]) + Counter(track["outcomes"]))
        notes = []
        if self.clip.has_sound and self.job.video.sound != "mute":
            notes.append(SOUND_KEPT if self.job.video.sound == "keep" else SOUND_DROPPED)
        if damaged:
            notes.append(f"could not be decoded, and is black in the release: {_spans(damaged)}")
        if missing := max(0, self.clip.frames - frames):
            notes.append(f"{missing} of the frames that it claims to have could not be read, and are missing")
        details: dict[str, Any] = {"frames": frames}
        if isinstance(self.method, FollowsFaces):
            ends = [_outcome(track["outcomes"]) for track in tracks.values()]
            doubtful, changed, spared = (ends.count(each) for each in ("doubtful", "changed", "spared"))
            found = len(ends) - doubtful
            hidden = found - changed - spared
            details["counts"] = {"found": found, "changed": changed, "hidden": hidden, "doubtful": doubtful}
            details["counts"] |= {"spared": spared} if spared else {}
            details["tracks"] = list(tracks.values())
            notes += [HIDDEN_TRACKS] * (hidden > 0) + [DOUBTFUL_TRACKS] * (doubtful > 0)
            notes += [SPARED_TRACKS] * (spared > 0)
        return PictureReport(tuple(sorted(notes)), details=details)


def _outcome(outcomes: dict[str, int]) -> str:
    """What became of a track: left in a frame, changed in every one, hidden in some, or never more than doubtful."""
    if "spared" in outcomes:
        return "spared"
    if set(outcomes) == {"changed"}:
        return "changed"
    return "hidden" if outcomes.keys() & {"hidden", "changed"} else "doubtful"


def _row(seen: Seen) -> list[Any]:
    points = None if seen.points is None else seen.points.tolist()
    return [seen.box, seen.certainty, points, seen.order, seen.weak]


def _seen(row: Sequence[Any]) -> Seen:
    box, certainty, points, order, weak = row
    left, top, right, bottom = box
    return Seen((left, top, right, bottom), certainty, None if points is None else np.array(points), order, weak)


def _spans(seconds: Sequence[float], near: float = 0.5) -> str:
    """Times as people read them: 1.20 to 1.84 s, 7.04 s."""
    spans: list[list[float]] = []
    for each in sorted(seconds):
        if spans and each - spans[-1][1] <= near:
            spans[-1][1] = each
        else:
            spans.append([each, each])
    return ", ".join(f"{one:.2f} s" if one == other else f"{one:.2f} to {other:.2f} s" for one, other in spans)


def _numbered(folder: Path, name: str, suffix: str) -> Iterator[Path]:
    """The files of a kind that are there without a gap, from the first on."""
    for number in count():
        file = folder / f"{name}-{number:06}{suffix}"
        if not file.exists():
            return
        yield file


def _write_whole(file: Path, text: str) -> None:
    draft = file.with_suffix(".writing")
    draft.write_text(text)
    draft.replace(file)


@contextmanager
def _ahead(tracks: Iterator[Tracks]) -> Iterator[Iterator[Tracks]]:
    """What an iterator gives, worked out in a thread of its own, some frames ahead."""
    ready: Queue[tuple[Tracks | None, BaseException | None]] = Queue(_WAITING)
    stopped = threading.Event()

    def put(each: tuple[Tracks | None, BaseException | None]) -> None:
        while not stopped.is_set():
            with suppress(Full):
                ready.put(each, timeout=0.2)
                return

    def work() -> None:
        try:
            for each in tracks:
                put((each, None))
                if stopped.is_set():
                    return
            put((None, None))
        except BaseException as error:  # raised again where the result is waited for
            put((None, error))

    def taken() -> Iterator[Tracks]:
        while True:
            try:
                each, error = ready.get(timeout=0.5)
            except Empty:
                if thread.is_alive():
                    continue
                raise VeilkitError("the finder of faces has stopped: run the same command again") from None
            if error is not None:
                raise error
            if each is None:
                return
            yield each

    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    try:
        yield taken()
    finally:
        stopped.set()
        thread.join()
