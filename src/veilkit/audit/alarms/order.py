"""Releases whose names tell nothing, but whose order does: that of the names, or of the times of the files."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np

from veilkit.audit.alarms.pairs import own_ranks, thumbnails
from veilkit.audit.inputs.cache import Cache
from veilkit.audit.inputs.pictures import FilePictures, scan
from veilkit.audit.inputs.subject import Subject
from veilkit.audit.result import Alarm
from veilkit.datasets.folder import walk
from veilkit.media.reading import Limits
from veilkit.pipeline.synthesis import is_synthetic

_LOOKED_AT, _FEWEST = 64, 12
_SURELY = 5.0  # standard deviations of the mean rank of own originals above one half
_SPREAD = 12**-0.5  # of a rank drawn evenly from [0, 1]
_DIGITS = re.compile(r"(\d+)")


def check_order(subject: Subject, originals: Path, limits: Limits, cache: Cache) -> Iterator[Alarm]:
    """Pair a release that nothing else pairs by its order, and look whether the pairs are alike."""
    if subject.originals is not None or is_synthetic(subject.manifest):
        return
    released = subject.protected.root
    sides = [
        sorted((path for path, is_image in walk(root) if is_image), key=_natural) for root in (originals, released)
    ]
    if len(sides[0]) != len(sides[1]) or len(sides[0]) < _FEWEST:
        return
    orders: dict[str, Callable[[Path], object]] = {
        "their names": lambda file: _natural(str(file)), "their times": lambda file: file.stat().st_mtime_ns,
    }  # fmt: skip
    for what, order in orders.items():
        made = sorted(sides[1], key=lambda path: order(released / path))  # type: ignore[arg-type, return-value]
        if _alike(originals, sides[0], released, made, limits, cache):
            yield Alarm(
                "order",
                f"sorted by {what}, the protected pictures stand as their originals do, and pairs of one place are "
                "alike: the order says which is which. Shuffle names and give all files one time",
            )
            return


def _natural(path: str) -> tuple[tuple[int, int, str], ...]:
    """Numbers by their value, so that 10 comes after 9."""
    return tuple((0, int(part), "") if part.isdigit() else (1, 0, part) for part in _DIGITS.split(path) if part)


def _alike(
    originals: Path, before: list[str], released: Path, after: list[str], limits: Limits, cache: Cache
) -> bool:
    places = np.unique(np.linspace(0, len(before) - 1, min(len(before), _LOOKED_AT)).astype(int))
    pictures = []
    pairs = [(before[place], after[place]) for place in places]
    scanned = [
        scan(root, [pair[side] for pair in pairs], limits, cache, what)[0]
        for side, (root, what) in enumerate(((originals, "originals"), (released, "protected pictures")))
    ]
    usable = [pair for pair in pairs if pair[0] in scanned[0] and pair[1] in scanned[1]]
    if len(usable) < _FEWEST:
        return False
    for side, root in enumerate((originals, released)):
        files = FilePictures(root, [scanned[side][pair[side]] for pair in usable], limits, cache, "pictures")
        pictures.append(thumbnails([files.pixels(index) for index in range(len(files))]))
    ranks = own_ranks(pictures[0], pictures[1], np.arange(len(usable)))
    return len(ranks) >= _FEWEST and (ranks.mean() - 0.5) * len(ranks) ** 0.5 / _SPREAD >= _SURELY
