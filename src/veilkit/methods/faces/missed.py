"""Which faces a first finder has missed, of those that a second one saw, and what a first one found twice."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from veilkit.experts.base import Detections
from veilkit.methods.faces.pasting import Box

_OVERLAP = 0.3  # of two boxes (intersection over union), from which on they are one face
_COVERED = 0.6  # of a doubtful box, from which on it is a part of the known face over it
_WELL_INSIDE = 0.25  # of a box's sides, from its edges


@dataclass(frozen=True, slots=True)
class Missed:
    """A box in which there is, or may be (`doubtful`), a face that the first finder did not see."""

    box: Box
    doubtful: bool


def missed_faces(found: Detections, known: Sequence[Box], certain: float) -> list[Missed]:
    """The faces of a second finder that are none of the known ones; certain: the score below which they are doubtful.

    Of boxes that overlap, the certain ones come first, and then the largest.
    """
    boxes = [(box, score) for box, score in zip(as_boxes(found), found.scores.tolist(), strict=True) if area(box) > 0]
    boxes.sort(key=lambda each: (each[1] < certain, -area(each[0]), each[0]))
    missed: list[Missed] = []
    for box, score in boxes:
        duplicate = any(overlap(box, each.box) > _OVERLAP for each in missed)
        doubtful = score < certain
        if not duplicate and not any(same_face(box, each) or (doubtful and _part(box, each)) for each in known):
            missed.append(Missed(box, doubtful))
    return missed


def as_boxes(found: Detections) -> list[Box]:
    """The boxes of detections, as numbers."""
    return [(left, top, right, bottom) for left, top, right, bottom in found.boxes.tolist()]


def distinct(boxes: Sequence[Box]) -> list[int]:
    """The places of boxes, the largest first, without those that are a larger one's again or empty."""
    chosen: list[int] = []
    for place in sorted(range(len(boxes)), key=lambda place: (-area(boxes[place]), boxes[place])):
        box = boxes[place]
        if area(box) > 0 and not any(overlap(box, boxes[other]) > _OVERLAP for other in chosen):
            chosen.append(place)
    return chosen


def area(box: Box) -> float:
    """Square pixels; 0 where the sides are crossed."""
    return max(0.0, box[2] - box[0]) * max(0.0, box[3] - box[1])


def overlap(one: Box, other: Box) -> float:
    """Intersection over union."""
    shared = _shared(one, other)
    return shared / max(area(one) + area(other) - shared, 1e-9)


def _shared(one: Box, other: Box) -> float:
    return area((max(one[0], other[0]), max(one[1], other[1]), min(one[2], other[2]), min(one[3], other[3])))


def _part(box: Box, known: Box) -> bool:
    """Whether what may be a face is an eye or a mouth of a known one, which is changed with it."""
    return _shared(box, known) >= _COVERED * area(box)


def same_face(box: Box, known: Box) -> bool:
    """Whether two finders mean one face: their boxes overlap, or the middle of one lies well inside of the other."""
    x, y = (box[0] + box[2]) / 2, (box[1] + box[3]) / 2
    wide, high = _WELL_INSIDE * (known[2] - known[0]), _WELL_INSIDE * (known[3] - known[1])
    # Near a corner it may be another head, behind or before the known one, whose face the new one does not cover.
    inside = known[0] + wide < x < known[2] - wide and known[1] + high < y < known[3] - high
    return overlap(box, known) > _OVERLAP or (inside and area(box) <= 2 * area(known))
