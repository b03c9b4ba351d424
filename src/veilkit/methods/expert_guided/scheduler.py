"""Many pictures optimised side by side, each by an optimisation of its own.

An optimisation is the whole work on one picture, written as if it were alone: it asks the expert about a picture, is
sent the answer, and ends with what it made. The optimisations share the expert's slots; when one ends, the next
takes its slot, so that no slot stands empty while pictures wait, however different their numbers of steps.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Generator, Iterable
from typing import NamedTuple, TypeAlias

from torch import Tensor

from veilkit.methods.expert_guided.feature_loss import Answer, AuthorisedExpert, Query
from veilkit.types import PictureReport


class Optimised(NamedTuple):
    """image: (3, H, W) in [0, 1], a multiple of 1/255. report: what its owner may know of it."""

    image: Tensor
    report: PictureReport


Optimisation: TypeAlias = Generator[Query, Answer, Optimised]


def optimise_side_by_side(
    optimisations: Iterable[tuple[int, Optimisation]], authorised: AuthorisedExpert
) -> list[Optimised]:
    """What each optimisation makes, in their order; they start when a slot is free.

    optimisations: (number of a lane, optimisation).
    """
    waiting: list[deque[tuple[int, Optimisation]]] = [deque() for _ in authorised.lanes]
    for place, (lane, optimisation) in enumerate(optimisations):
        waiting[lane].append((place, optimisation))
    made: dict[int, Optimised] = {}
    running: dict[int, tuple[int, Optimisation, Query]] = {}
    while True:
        for queue, slots in zip(waiting, authorised.lanes, strict=True):
            for slot in slots:
                if queue and slot not in running:
                    place, optimisation = queue.popleft()
                    running[slot] = place, optimisation, next(optimisation)
        if not running:
            return [made[place] for place in range(len(made))]
        answers = authorised.evaluate({slot: query for slot, (_, _, query) in running.items()})
        for slot, answer in answers.items():
            place, optimisation, _ = running.pop(slot)
            try:
                running[slot] = place, optimisation, optimisation.send(answer)
            except StopIteration as end:
                made[place] = end.value


def quantised(picture: Tensor) -> Tensor:
    """The picture as an 8-bit file will hold it. Used straight through: its gradient counts as the picture's."""
    return picture.mul(255).round_().clamp_(0, 255).div_(255)
