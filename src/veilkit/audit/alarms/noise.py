"""Whether the same noise was added to different pictures: then two of them, or a mean of all, take it off again."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from veilkit.audit.inputs.subject import Subject
from veilkit.audit.result import Alarm
from veilkit.rng import Randomness

_PICTURES = 48  # of one size that are compared
_PAIRS = 96
_CORNER = 384  # pixels a side of large pictures that are compared, which bounds the memory
_TOGETHER = 0.5  # mean correlation of the noise of two pictures; of independent noise it is 0
_FEWEST = 4
_FAINT = 0.5  # of 255, spread of what a protection changed: below it is rounding


def check_noise(subject: Subject, rng: Randomness) -> tuple[Alarm, ...]:
    """Correlate what the protection added to pictures of different content, pixel by pixel.

    Of each picture, original subtracted where it is known, the mixed second difference is taken, of a pixel and three
    neighbours: white noise stays in it, while edges along rows or columns, smooth areas and blocks vanish. What blur
    or pixelation takes away depends on the picture, and differs between pictures; noise that is made once and used
    again does not.
    """
    places = _of_one_size(subject, rng)
    if len(places) < _FEWEST:
        return ()
    added = [_added(subject, int(place)) for place in places]
    names = [_content(subject, int(place)) for place in places]
    generator = rng.child("pairs").numpy()
    found = []
    for _ in range(_PAIRS):
        one, other = generator.choice(len(places), 2, replace=False)
        if names[one] != names[other] and min(added[one].std(), added[other].std()) > _FAINT:
            found.append(_correlation(added[one], added[other]))
    if len(found) < _FEWEST or np.mean(found) <= _TOGETHER:
        return ()
    return (
        Alarm(
            "repeated noise",
            f"what was added to different pictures is nearly the same (mean correlation {np.mean(found):.2f}, 0 "
            "where noise is independent): who has two of them, or one original, can take it off. Each picture needs "
            "noise of its own",
        ),
    )


def _of_one_size(subject: Subject, rng: Randomness) -> NDArray[np.int64]:
    """Pictures of the most frequent size, whose originals have it too; some of them, drawn at random."""
    sizes = subject.protected.sizes
    usable = (sizes >= 3).all(axis=1)
    if subject.originals is not None:
        usable &= (sizes == subject.originals.sizes).all(axis=1)
    if not usable.any():
        return np.empty(0, dtype=np.int64)
    kinds, counts = np.unique(sizes[usable], axis=0, return_counts=True)
    places = np.flatnonzero(usable & (sizes == kinds[np.argmax(counts)]).all(axis=1))
    return places[rng.child("pictures").permutation(len(places))[:_PICTURES]]


def _added(subject: Subject, place: int) -> NDArray[np.float32]:
    values = subject.protected.pixels(place)[:_CORNER, :_CORNER].astype(np.float32)
    if subject.originals is not None:
        values -= subject.originals.pixels(place)[:_CORNER, :_CORNER]
    mixed = values[1:, 1:] - values[1:, :-1] - values[:-1, 1:] + values[:-1, :-1]
    return np.asarray(mixed.ravel(), dtype=np.float32)


def _content(subject: Subject, place: int) -> str:
    pictures = subject.protected if subject.originals is None else subject.originals
    return pictures.files[place].sha256


def _correlation(one: NDArray[np.float32], other: NDArray[np.float32]) -> float:
    one, other = one - one.mean(), other - other.mean()
    return float(one @ other / (np.sqrt((one @ one) * (other @ other)) + 1e-12))
