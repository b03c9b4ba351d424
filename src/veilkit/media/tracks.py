"""Boxes of single frames to tracks: what is seen in one frame is covered in its neighbours too.

A detector misses a face now and then. Boxes of neighbouring frames are linked, gaps between them are filled, and each
track goes on for a while before its first and after its last sight, until the picture is cut. A tracker is given the
frames one after the other and holds only those near the last one.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linear_sum_assignment

Box: TypeAlias = tuple[float, float, float, float]
"""Left, top, right, bottom in pixels."""
Certainty: TypeAlias = Literal[0, 1, 2]
"""0: it may be something; 1: it is, but no more is known of it; 2: it is."""
_LEAST_SHARED = 0.15  # intersection over union of what is predicted and what is seen, for the two to be one thing
_NEAR = 1.0  # or: distance of the centres, in mean sides, ...
_ALIKE = 1.6  # ... where neither is larger than so many times the other
_MOVEMENT = 5  # frames from which a movement is read
_MOST_GROWTH = 0.5


@dataclass(frozen=True, slots=True)
class Seen:
    """A box in one frame. points: (P, 2) of the face, in the order of that name, if they are known.

    weak: it counts only where a track was to be expected (as in ByteTrack, 2022): most such boxes are nothing.
    """

    box: Box
    certainty: Certainty = 2
    points: NDArray[np.float64] | None = None
    order: str = "five"
    weak: bool = False


@dataclass(frozen=True, slots=True)
class TrackSettings:
    """Lengths in frames. gap: how long a thing may be missed and still be the same.

    tail, doubtful_tail: how long before its first and after its last sight it is covered, where a detector was sure
    of it, and where none was. growth: by which share of its side a box that nobody saw is widened for each frame of
    distance to a sight, at most a half in all. around: a box also covers what it covered so many frames before and
    after, so that its edge is never too late, and is the mean of such boxes of as many frames, so that it does not
    flicker; each of these covers what is in the frame itself.
    """

    gap: int = 25
    tail: int = 12
    doubtful_tail: int = 5
    growth: float = 0.02
    around: int = 2

    @property
    def ahead(self) -> int:
        """How many frames after it must be known before it is clear what a frame's tracks are."""
        return max(self.gap, self.tail) + 2 * self.around + 1


@dataclass(slots=True)
class _Track:
    number: int
    first: int
    shot: int
    certainty: Certainty = 0
    seen: dict[int, Seen] = field(default_factory=dict)  # in the order of frames; the oldest are forgotten
    known: dict[int, tuple[Seen | None, NDArray[np.float64]]] = field(default_factory=dict)

    @property
    def last(self) -> int:
        return next(reversed(self.seen))

    def movement(self, edge: int, step: int) -> NDArray[np.float64]:
        """Pixels a frame (x, y, x, y) at its first (step 1) or last (step -1) sight, read from those next to it."""
        near = [time for time in self.seen if 0 < (time - edge) * step <= _MOVEMENT]
        if not near:
            return np.zeros(4)
        other = max(near) if step > 0 else min(near)
        shift = (np.asarray(self.seen[other].box) - np.asarray(self.seen[edge].box)) / (other - edge)
        return np.tile((shift[:2] + shift[2:]) / 2, 2)

    def predicted(self, frame: int) -> Box:
        """Where it should be, going on as before its last sight."""
        ahead = min(frame - self.last, _MOVEMENT)
        return _box(np.asarray(self.seen[self.last].box) + ahead * self.movement(self.last, -1))


class Tracker:
    """Links what is seen in frame after frame (`add`), and says what is to be covered in a frame (`covered`)."""

    def __init__(self, settings: TrackSettings) -> None:
        self.settings = settings
        self._shots: dict[int, int] = {}
        self._tracks: list[_Track] = []
        self._frames = self._count = 0

    def add(self, seen: Sequence[Seen], shot: int) -> None:
        """What was seen in the next frame, which belongs to the shot of that number."""
        frame, settings = self._frames, self.settings
        self._frames += 1
        self._shots[frame] = shot
        going = [track for track in self._tracks if frame - track.last <= settings.gap + 1 and track.shot == shot]
        new = _linked(going, [each for each in seen if not each.weak], frame)
        _linked([track for track in going if track.last < frame], [each for each in seen if each.weak], frame)
        for each in new:
            self._tracks.append(_Track(self._count, frame, shot, each.certainty, {frame: each}))
            self._count += 1
        self._forget(frame - 2 * settings.ahead)

    def covered(self, frame: int) -> list[tuple[int, Seen]]:
        """The tracks of a frame by their numbers: `settings.ahead` frames after it, or all there are, are added.

        A sight's certainty is its track's.
        """
        return [(track.number, box) for track in self._tracks if (box := self._steady(track, frame)) is not None]

    def _forget(self, frame: int) -> None:
        """Drop what was before a frame, but for each track's last sight before it."""
        self._shots.pop(frame - 1, None)
        self._tracks = [track for track in self._tracks if track.last >= frame]
        for track in self._tracks:
            old = [time for time in track.seen if time < frame]
            for time in old[:-1]:
                del track.seen[time]
            for time in [time for time in track.known if time < frame]:
                del track.known[time]

    def _steady(self, track: _Track, frame: int) -> Seen | None:
        """The box that covers the thing in this frame and in those around it."""
        here, around = self._at(track, frame), self.settings.around
        if here is None:
            return None
        near = [self._wide(track, time) for time in range(max(0, frame - around), frame + around + 1)]
        points = here.points
        if points is not None:
            found = [seen.points for seen, _ in near if seen is not None and seen.points is not None]
            points = np.mean([each for each in found if each.shape == points.shape], axis=0)
        box = np.mean([box for seen, box in near if seen is not None], axis=0)
        return Seen(_box(box), track.certainty, points, here.order)

    def _wide(self, track: _Track, frame: int) -> tuple[Seen | None, NDArray[np.float64]]:
        """Where it is in a frame, if anywhere, and the box that also covers where it is in the frames around."""
        if frame not in track.known:
            around = self.settings.around
            times = range(max(0, frame - around), frame + around + 1)
            boxes = np.array([each.box for time in times if (each := self._at(track, time)) is not None])
            wide = np.concatenate([boxes[:, :2].min(0), boxes[:, 2:].max(0)]) if len(boxes) else np.zeros(4)
            track.known[frame] = self._at(track, frame), wide
        return track.known[frame]

    def _at(self, track: _Track, frame: int) -> Seen | None:
        """Where it is in a frame: seen, between two sights on a straight line, or beyond its first or last one."""
        if frame in track.seen:
            return track.seen[frame]
        times = list(track.seen)
        place = bisect_left(times, frame)
        if 0 < place < len(times):
            return self._between(track, times[place - 1], times[place], frame)
        edge = times[0] if place == 0 else times[-1]
        tail = self.settings.tail if track.certainty else self.settings.doubtful_tail
        if abs(frame - edge) > tail or self._shots.get(frame) != track.shot or (place == 0 and edge != track.first):
            return None
        moved = track.movement(edge, 1 if place == 0 else -1) * (frame - edge)
        return Seen(self._widened(np.asarray(track.seen[edge].box) + moved, abs(frame - edge)))

    def _between(self, track: _Track, before: int, after: int, frame: int) -> Seen:
        one, other = track.seen[before], track.seen[after]
        share = (frame - before) / (after - before)
        box = (1 - share) * np.asarray(one.box) + share * np.asarray(other.box)
        points = None
        if one.points is not None and other.points is not None and one.order == other.order:
            points = (1 - share) * one.points + share * other.points
        return Seen(self._widened(box, min(frame - before, after - frame)), points=points, order=one.order)

    def _widened(self, box: NDArray[np.float64], distance: int) -> Box:
        margin = min(_MOST_GROWTH, self.settings.growth * distance) * (box[2:] - box[:2]) / 2
        return _box(np.concatenate([box[:2] - margin, box[2:] + margin]))


class Shots:
    """Numbers the shots of a video: a new one begins where a frame is like neither of the two before it.

    Two, since one frame may be a flash. frames are compared as small grey pictures.
    """

    def __init__(self, *, most: float = 0.06, least_alike: float = 0.5) -> None:
        self._most, self._least_alike = most, least_alike
        self._before: list[tuple[int, NDArray[np.uint8]]] = []
        self._count = 0

    @property
    def last(self) -> int:
        """The number of the shot of the last frame; -1 before the first."""
        return self._before[-1][0] if self._before else -1

    def state(self) -> list[Any]:
        """What to go on from, as JSON values."""
        return [self._count, [(shot, small.tolist()) for shot, small in self._before]]

    @classmethod
    def from_state(cls, state: Sequence[Any]) -> Shots:
        """Go on from a state."""
        shots = cls()
        shots._count = state[0]
        shots._before = [(shot, np.array(small, np.uint8)) for shot, small in state[1]]
        return shots

    def number(self, small: NDArray[np.uint8]) -> int:
        """The number of the shot of the next frame, given as (h, w) grey in a few hundred pixels."""
        shot = next((number for number, other in reversed(self._before) if self._same(small, other)), None)
        if shot is None:
            shot, self._count = self._count, self._count + 1
        self._before = [*self._before[-1:], (shot, small)]
        return shot

    def _same(self, one: NDArray[np.uint8], before: NDArray[np.uint8]) -> bool:
        """Alike in their values, or, where the light has changed, in their pattern."""
        now, other = one / np.float32(255), before / np.float32(255)
        if float(np.abs(now - other).mean()) <= self._most:
            return True
        spread = float(now.std() * other.std())
        alike = float(((now - now.mean()) * (other - other.mean())).mean()) / max(spread, 1e-6)
        return alike >= self._least_alike


def overlap(one: Box, other: Box) -> float:
    """Intersection over union."""
    width = min(one[2], other[2]) - max(one[0], other[0])
    height = min(one[3], other[3]) - max(one[1], other[1])
    if width <= 0 or height <= 0:
        return 0.0
    shared = width * height
    areas = ((each[2] - each[0]) * (each[3] - each[1]) for each in (one, other))
    return shared / (sum(areas) - shared)


def _linked(tracks: Sequence[_Track], seen: Sequence[Seen], frame: int) -> list[Seen]:
    """Give each track what is seen of it in a frame; returns what belongs to none of them."""
    pairs = _assigned([track.predicted(frame) for track in tracks], [each.box for each in seen])
    for row, column in pairs:
        tracks[row].seen[frame] = seen[column]
        tracks[row].certainty = max(tracks[row].certainty, seen[column].certainty)
    known = {column for _, column in pairs}
    return [each for column, each in enumerate(seen) if column not in known]


def _assigned(predicted: Sequence[Box], seen: Sequence[Box]) -> list[tuple[int, int]]:
    """Which prediction is which sight, best in all."""
    if not predicted or not seen:
        return []
    worth = np.array([[_likeness(one, other) for other in seen] for one in predicted])
    rows, columns = linear_sum_assignment(-worth)
    return [(int(row), int(column)) for row, column in zip(rows, columns, strict=True) if worth[row, column] > 0]


def _likeness(one: Box, other: Box) -> float:
    """Above 0 where two boxes may be one thing in neighbouring frames, the more the likelier."""
    shared = overlap(one, other)
    if shared >= _LEAST_SHARED:
        return 1 + shared
    sides = [(each[2] - each[0] + each[3] - each[1]) / 2 for each in (one, other)]
    if min(sides) <= 0 or max(sides) > _ALIKE * min(sides):
        return 0.0
    apart = np.hypot(one[0] + one[2] - other[0] - other[2], one[1] + one[3] - other[1] - other[3]) / 2
    return max(0.0, 1 - float(apart) / (_NEAR * sum(sides) / 2))


def _box(values: NDArray[np.float64]) -> Box:
    left, top, right, bottom = (float(value) for value in values)
    return left, top, right, bottom
