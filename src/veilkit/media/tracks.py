"""Boxes of single frames to tracks: what is seen in one frame is covered in its neighbours too.

A detector misses a face now and then. Boxes of neighbouring frames are linked, gaps between them are filled, and each
track goes on for a while before its first and after its last sight, until the picture is cut.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linear_sum_assignment

Box = tuple[float, float, float, float]
"""Left, top, right, bottom in pixels."""
_LEAST_SHARED = 0.15  # intersection over union of what is predicted and what is seen, for the two to be one thing
_NEAR = 1.0  # or: distance of the centres, in mean sides, ...
_ALIKE = 1.6  # ... where neither is larger than so many times the other


@dataclass(frozen=True, slots=True)
class Seen:
    """A box in one frame. doubtful: it may be a face. points: (P, 2) of the face, if they are known."""

    box: Box
    doubtful: bool = False
    points: NDArray[np.float64] | None = None


@dataclass(slots=True)
class Track:
    """One thing through the frames that it is covered in. seen: where a detector saw it, by frame."""

    number: int
    seen: dict[int, Seen] = field(default_factory=dict)
    covered: dict[int, Seen] = field(default_factory=dict)

    @property
    def doubtful(self) -> bool:
        """Whether no detector was ever sure of it."""
        return all(each.doubtful for each in self.seen.values())

    @property
    def last(self) -> int:
        """The last frame in which it was seen."""
        return max(self.seen)

    def predicted(self, frame: int) -> Box:
        """Where it should be, going on as between its last two sights."""
        times = sorted(self.seen)[-2:]
        boxes = [np.asarray(self.seen[time].box) for time in times]
        if len(times) == 1 or times[1] - times[0] > 5:  # longer ago than a movement lasts
            return _box(boxes[-1])
        ahead = min(frame - times[1], 5)
        centre = (boxes[1] - boxes[0]) / (times[1] - times[0])
        shift = np.tile((centre[:2] + centre[2:]) / 2, 2)
        return _box(boxes[1] + ahead * shift)


def linked(frames: Sequence[Sequence[Seen]], shots: Sequence[int], *, gap: int) -> list[Track]:
    """Tracks of what is seen in each frame. shots: the number of each frame's shot; gap: frames it may be missed."""
    tracks: list[Track] = []
    going: list[Track] = []
    for frame, seen in enumerate(frames):
        going = [track for track in going if frame - track.last <= gap + 1 and shots[track.last] == shots[frame]]
        pairs = _assigned([track.predicted(frame) for track in going], [each.box for each in seen])
        for row, column in pairs:
            going[row].seen[frame] = seen[column]
        known = {column for _, column in pairs}
        for column, each in enumerate(seen):
            if column not in known:
                track = Track(len(tracks), {frame: each})
                tracks.append(track)
                going.append(track)
    return tracks


def cover(tracks: Sequence[Track], shots: Sequence[int], *, tail: int, growth: float = 0.02, around: int = 2) -> None:
    """Fill each track's `covered`: its sights, the gaps between them, and so many frames before and after (`tail`).

    growth: by which share of its side a box that nobody saw is widened for each frame of distance to a sight, at most
    a half in all. around: a box also covers what it covered so many frames before and after, so that it does not
    flicker and its edge is never too late.
    """
    for track in tracks:
        filled = _filled(track, growth)
        first, last = min(filled), max(filled)
        for step in range(1, tail + 1):
            for edge, frame in ((first, first - step), (last, last + step)):
                if 0 <= frame < len(shots) and shots[frame] == shots[edge]:
                    known = filled[edge]
                    filled[frame] = Seen(_widened(known.box, min(0.5, growth * step)), known.doubtful)
        track.covered = {frame: _steady(filled, frame, around) for frame in sorted(filled)}


def overlap(one: Box, other: Box) -> float:
    """Intersection over union."""
    width = min(one[2], other[2]) - max(one[0], other[0])
    height = min(one[3], other[3]) - max(one[1], other[1])
    if width <= 0 or height <= 0:
        return 0.0
    shared = width * height
    areas = ((each[2] - each[0]) * (each[3] - each[1]) for each in (one, other))
    return shared / (sum(areas) - shared)


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


def _filled(track: Track, growth: float) -> dict[int, Seen]:
    """The sights, and what lies between them on straight lines."""
    filled = dict(track.seen)
    times = sorted(track.seen)
    for before, after in pairwise(times):
        one, other = track.seen[before], track.seen[after]
        for frame in range(before + 1, after):
            share = (frame - before) / (after - before)
            box = (1 - share) * np.asarray(one.box) + share * np.asarray(other.box)
            far = min(frame - before, after - frame)
            points = None
            if one.points is not None and other.points is not None and one.points.shape == other.points.shape:
                points = (1 - share) * one.points + share * other.points
            filled[frame] = Seen(_widened(_box(box), min(0.5, growth * far)), one.doubtful and other.doubtful, points)
    return filled


def _steady(filled: dict[int, Seen], frame: int, around: int) -> Seen:
    """The box that covers the thing in this frame and in those around it."""
    near = [np.asarray(filled[time].box) for time in range(frame - around, frame + around + 1) if time in filled]
    boxes = np.stack(near)
    box = (*boxes[:, :2].min(0), *boxes[:, 2:].max(0))
    return Seen(_box(np.asarray(box)), filled[frame].doubtful, filled[frame].points)


def _widened(box: Box, share: float) -> Box:
    x, y = share * (box[2] - box[0]) / 2, share * (box[3] - box[1]) / 2
    return box[0] - x, box[1] - y, box[2] + x, box[3] + y


def _box(values: NDArray[np.float64]) -> Box:
    left, top, right, bottom = (float(value) for value in values)
    return left, top, right, bottom
