"""Protected pictures that are no protection: equal to their originals, all the same, or under one noise."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from veilkit.audit.inputs.pictures import FilePictures
from veilkit.audit.inputs.subject import Subject
from veilkit.audit.result import Alarm
from veilkit.rng import Randomness

_NEARLY = 45.0  # dB of PSNR: what a JPEG of the best quality does to a picture, and no protection
_FLAT = 2.0  # of 255: an original whose values spread less has nothing to hide
_LOOKED_AT = 2000  # pictures at most, evenly chosen
_MOST = 0.5  # of the pictures that must be the same


def check_pixels(subject: Subject) -> Iterator[Alarm]:
    """Compare protected pictures with their originals and with each other."""
    places = _chosen(len(subject.protected))
    if subject.originals is not None and (near := _unchanged(subject.originals, subject.protected, places)):
        yield Alarm(
            "unchanged",
            f"{near} of {len(places)} protected pictures that were looked at equal their originals, or differ less "
            f"than a good JPEG does ({_NEARLY:g} dB): they are not protected",
        )
    subject = subject.whole
    places = _chosen(len(subject.protected))
    same, flat = _same(subject.protected, places)
    different = len({file.sha256 for file in _sources(subject).files})
    if len(places) > 1 and different > 1 and max(same, flat) > _MOST * len(places):
        what = "are one and the same picture" if same >= flat else "have one single colour value"
        yield Alarm(
            "constant",
            f"{max(same, flat)} of {len(places)} protected pictures {what}: nothing can be found in them and nothing "
            "can be done with them. Scores of privacy say nothing of a protection here",
        )


def _chosen(count: int) -> NDArray[np.int_]:
    return np.unique(np.linspace(0, count - 1, min(count, _LOOKED_AT)).astype(int))


def _sources(subject: Subject) -> FilePictures:
    return subject.protected if subject.originals is None else subject.originals


def _unchanged(originals: FilePictures, protected: FilePictures, places: NDArray[np.int_]) -> int:
    near = 0
    for place in places:
        if (originals.sizes[place] != protected.sizes[place]).any():
            continue
        raw, made = (each.pixels(int(place)).astype(np.float32) for each in (originals, protected))
        error = float(np.square(raw - made).mean())
        near += raw.std() > _FLAT and (error == 0 or 10 * np.log10(255**2 / error) > _NEARLY)
    return near


def _same(pictures: FilePictures, places: NDArray[np.int_]) -> tuple[int, int]:
    """How many pictures the most frequent one is, and how many have a single value in each colour."""
    seen: Counter[bytes] = Counter()
    flat = 0
    for place in places:
        values = pictures.pixels(int(place))
        seen[hashlib.sha256(repr(values.shape).encode() + values.tobytes()).digest()] += 1
        flat += bool((values == values[:1, :1]).all())
    return max(seen.values()), flat


_PICTURES = 48  # of one size that are compared
_PAIRS = 96
_CORNER = 384  # pixels a side of large pictures that are compared, which bounds the memory
_TOGETHER = 0.5  # mean correlation of the noise of two pictures; of independent noise it is 0
_FEWEST = 4
_FAINT = 0.5  # of 255, spread of what a protection changed: below it is rounding


def check_noise(subject: Subject, rng: Randomness) -> Iterator[Alarm]:
    """Correlate what the protection added to pictures of different content, pixel by pixel.

    Of each picture, original subtracted where it is known, the mixed second difference is taken, of a pixel and three
    neighbours: white noise stays in it, while edges along rows or columns, smooth areas and blocks vanish. What blur
    or pixelation takes away depends on the picture, and differs between pictures; noise that is made once and used
    again does not.
    """
    subject = subject.whole
    places = _of_one_size(subject, rng)
    if len(places) < _FEWEST:
        return
    added = [_added(subject, int(place)) for place in places]
    names = [_sources(subject).files[place].sha256 for place in places]
    generator = rng.child("pairs").numpy()
    found = []
    for _ in range(_PAIRS):
        one, other = generator.choice(len(places), 2, replace=False)
        if names[one] != names[other] and min(added[one].std(), added[other].std()) > _FAINT:
            found.append(_correlation(added[one], added[other]))
    if len(found) >= _FEWEST and np.mean(found) > _TOGETHER:
        yield Alarm(
            "repeated noise",
            f"what was added to different pictures is nearly the same (mean correlation {np.mean(found):.2f}, 0 "
            "where noise is independent): who has two of them, or one original, can take it off. Each picture needs "
            "noise of its own",
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


def _correlation(one: NDArray[np.float32], other: NDArray[np.float32]) -> float:
    one, other = one - one.mean(), other - other.mean()
    return float(one @ other / (np.sqrt((one @ one) * (other @ other)) + 1e-12))
