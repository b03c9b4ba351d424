"""Many pictures optimised side by side, each by a course of its own.

A course is the whole optimisation of one picture, written as if it were alone: it asks the expert about a picture, is
sent the answer, and ends with what it made. The courses share the expert's slots; when one ends, the next takes its
slot, so that no slot stands empty while pictures wait, however different their numbers of steps.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Generator, Iterable, Mapping
from typing import Any, NamedTuple, TypeAlias

from torch import Tensor

from veilkit.methods.expert_guided.feature_loss import Answer, Ask, Authorised


class Made(NamedTuple):
    """image: (3, H, W) in [0, 1], a multiple of 1/255. report: what its owner may know of it, as JSON values."""

    image: Tensor
    report: Mapping[str, Any]


Course: TypeAlias = Generator[Ask, Answer, Made]


def run_courses(courses: Iterable[tuple[int, Course]], authorised: Authorised) -> list[Made]:
    """What each course makes, in their order. courses: (number of a lane, course); they begin when a slot is free."""
    waiting: list[deque[tuple[int, Course]]] = [deque() for _ in authorised.lanes]
    for place, (lane, course) in enumerate(courses):
        waiting[lane].append((place, course))
    made: dict[int, Made] = {}
    running: dict[int, tuple[int, Course, Ask]] = {}
    while True:
        for queue, slots in zip(waiting, authorised.lanes, strict=True):
            for slot in slots:
                if queue and slot not in running:
                    place, course = queue.popleft()
                    running[slot] = place, course, next(course)
        if not running:
            return [made[place] for place in range(len(made))]
        answers = authorised.evaluate({slot: ask for slot, (_, _, ask) in running.items()})
        for slot, answer in answers.items():
            place, course, _ = running.pop(slot)
            try:
                running[slot] = place, course, course.send(answer)
            except StopIteration as end:
                made[place] = end.value


def quantised(picture: Tensor) -> Tensor:
    """The picture as an 8-bit file will hold it. Used straight through: its gradient counts as the picture's."""
    return picture.mul(255).round_().clamp_(0, 255).div_(255)
