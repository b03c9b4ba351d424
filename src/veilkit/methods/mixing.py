"""Controls that mix pictures of several people: mix-up, and patch recombination (PRO).

Both are pixel-level relatives of FRO (FRO paper, Sec. 3.1 and Figure 7), and both can be undone: they are here to be
measured against.
"""

from __future__ import annotations

import heapq
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, cycle
from typing import Literal

import torch
import torch.nn.functional as F

from veilkit.configs import check_range, check_ranges
from veilkit.errors import DataError
from veilkit.methods.base import Item, Method
from veilkit.rng import Randomness
from veilkit.types import ImageBatch, Release


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


@dataclass(frozen=True, slots=True)
class MixUpConfig:
    """ratio: the share of a picture's own pixels (FRO, Figure 7: 0.9 to 0.5). people: pictures in a ring."""

    ratio: float = 0.5
    people: int = 8

    def __post_init__(self) -> None:
        check_range("ratio", self.ratio, 0.01, 0.99)  # at either end, one picture is released as it is
        check_range("people", self.people, 2, 1000)


class MixUp(Method[MixUpConfig]):
    """Each picture blended with that of another person."""

    name = "mixup"
    summary = "every picture blended with another person's"
    undone_by = "unmix"
    default = MixUpConfig()
    presets = {f"r{ratio}": MixUpConfig(ratio=ratio / 10) for ratio in (9, 8, 7, 6, 5)}  # noqa: RUF012
    random = True

    def groups(self, items: Sequence[Item], *, rng: Randomness) -> Iterator[tuple[int, ...]]:
        """Rings of different people."""
        return iter(groups_of_people(items, self.config.people, rng=rng.child("groups"), method=self.name))

    def protect(self, batch: ImageBatch, *, rng: Randomness) -> Release:
        """Blend each image of the ring with the next: r x_i + (1 - r) x_(i+1)."""
        ratio = self.config.ratio
        mixed = ratio * batch.images + (1 - ratio) * batch.images.roll(-1, dims=0)
        return Release(images=mixed.clamp(0, 1), source_index=tuple(range(len(batch))))


@dataclass(frozen=True, slots=True)
class PatchesConfig:
    """The grid, how many people share one picture, and whether a patch may leave its place in the grid."""

    rows: int = 8
    columns: int = 4
    people: int = 4
    places: Literal["shuffled", "kept"] = "shuffled"

    def __post_init__(self) -> None:
        check_ranges(self, {"rows columns": (1, 1000), "people": (2, 1000)})
        check_range("rows x columns", self.rows * self.columns, 2, 1_000_000)  # of one patch, it would hide nothing


class Patches(Method[PatchesConfig]):
    """Patch recombination (PRO): pictures cut into a grid, the patches dealt out anew among several people.

    The paper gives neither grid nor number of people; ours are in the configuration. With `places="kept"` a patch
    only changes the picture, so that heads stay above feet.
    """

    name = "patches"
    summary = "patch recombination (PRO): patches dealt out among several people's pictures"
    undone_by = "jigsaw"
    default = PatchesConfig()
    presets = {"kept": PatchesConfig(places="kept")}  # noqa: RUF012
    random = True

    def groups(self, items: Sequence[Item], *, rng: Randomness) -> Iterator[tuple[int, ...]]:
        """Groups of different people."""
        return iter(groups_of_people(items, self.config.people, rng=rng.child("groups"), method=self.name))

    def protect(self, batch: ImageBatch, *, rng: Randomness) -> Release:
        """Deal out the patches; every patch of the group is used once. Sides are padded to full patches, then cut."""
        count, _, height, width = batch.images.shape
        rows, columns = min(self.config.rows, height), min(self.config.columns, width)
        padded = F.pad(batch.images, (0, -width % columns, 0, -height % rows), mode="replicate")
        side, across = padded.shape[-2] // rows, padded.shape[-1] // columns
        patches = padded.reshape(count, 3, rows, side, columns, across).permute(0, 2, 4, 1, 3, 5)
        patches = patches.reshape(count, rows * columns, 3, side, across)
        deal = rng.child("deal", *batch.items)
        if self.config.places == "shuffled":
            order = torch.from_numpy(deal.permutation(count * rows * columns))
            dealt = patches.flatten(0, 1)[order].reshape(patches.shape)
        else:
            places = range(rows * columns)
            orders = torch.stack([torch.from_numpy(deal.child(place).permutation(count)) for place in places], dim=1)
            dealt = patches[orders, torch.arange(rows * columns)]
        dealt = dealt.reshape(count, rows, columns, 3, side, across).permute(0, 3, 1, 4, 2, 5)
        images = dealt.reshape(padded.shape)[:, :, :height, :width].contiguous()
        return Release(images=images, source_index=tuple(range(count)))
