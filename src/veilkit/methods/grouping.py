"""Groups of pictures of different people, formed from the item list before any batching."""

from __future__ import annotations

import heapq
from collections import defaultdict
from collections.abc import Sequence
from itertools import chain, cycle

from veilkit.errors import DataError
from veilkit.methods.base import Item
from veilkit.rng import Randomness


def groups_of_people(items: Sequence[Item], size: int, *, rng: Randomness, method: str) -> list[tuple[int, ...]]:
    """Every position of `items` in one group of at least `size` pictures, no person twice in a group where possible.

    The order is the keyed order of the names, so that it depends neither on the order of `items` nor on anything an
    outsider knows. Pictures of unknown people count as pictures of different people.
    """
    queues: dict[str, list[int]] = defaultdict(list)
    for index in sorted(range(len(items)), key=lambda index: rng.tag("order", items[index].name)):
        person = items[index].identity
        queues[f"person {person}" if person is not None else f"picture {items[index].name}"].append(index)
    if len(queues) < size:
        raise DataError(
            f"{method} mixes {size} different people, but the pictures show {len(queues)}: give it more, mix fewer, "
            "or say how people are labelled (labels 'none' takes each picture for a person of its own)"
        )
    # Whoever has the most pictures left goes first: otherwise one person's pictures pile up at the end.
    waiting = [(-len(queue), position, person) for position, (person, queue) in enumerate(queues.items())]
    heapq.heapify(waiting)
    groups: list[list[int]] = []
    people: list[set[str]] = []
    while len(waiting) >= size:
        taken = [heapq.heappop(waiting) for _ in range(size)]
        groups.append([queues[person].pop() for _, _, person in taken])
        people.append({person for _, _, person in taken})
        for count, position, person in taken:
            if count < -1:
                heapq.heappush(waiting, (count + 1, position, person))
    left = sum(-count for count, _, _ in waiting)
    if left > size * len(groups):  # a group is worked on at once: it must not grow without bound
        raise DataError(
            f"{method} mixes {size} different people, but too many pictures show the same few: {left} of "
            f"{len(items)} find no others to be mixed with. Mix fewer, or say how people are labelled "
            "(labels 'none' takes each picture for a person of its own)"
        )
    for _, _, person in sorted(waiting):
        without = (group for group in range(len(groups)) if person not in people[group])
        for index, group in zip(queues[person], chain(without, cycle(range(len(groups)))), strict=False):
            groups[group].append(index)
            people[group].add(person)
    return [tuple(group) for group in groups]
