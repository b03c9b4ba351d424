"""Protected pictures that are no protection: equal to their originals, all the same, or under one noise."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace

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
_CORNER = 384  # pixels a side of large pictures that are compared, which bounds the memory
_TOGETHER = 0.5  # correlation of the noise of two pictures; of independent noise it is 0
_ALIKE = 0.3  # correlation of two originals that are nearly the same
_FEWEST, _FEWEST_PAIRS, _SOME = 4, 3, 0.01  # pairs that are compared; that must be alike, and their share
_FEW_PICTURES, _NEAR = 16, 3  # pictures in which a pattern is looked for, and pixels that are no distance
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
    added = np.stack([_unit(_second_difference(subject, int(place), subject.originals)) for place in places])
    some = np.asarray(added.any(axis=1))
    apart = np.triu(_unlike(subject, places), 1) & some[:, None] & some[None, :]
    found = (added @ added.T)[apart]
    together = int((found > _TOGETHER).sum())
    enough = _SOME if subject.originals is not None else _MOST  # pictures themselves may be alike, noise may not
    if len(found) >= _FEWEST and together >= max(_FEWEST_PAIRS, enough * len(found)):
        yield Alarm(
            "repeated noise",
            f"what was added to different pictures is nearly the same in {together} of {len(found)} pairs of them "
            "(correlation above 0.5; 0 where noise is independent): who has two of them, or one original, can take "
            "it off. Each picture needs noise of its own",
        )
    elif (peak := _repeats(subject, places)) > _TOGETHER:
        yield Alarm(
            "repeated noise",
            f"what was added to each picture repeats within it (correlation {peak:.2f} with itself at one and the "
            "same distance in all of them): it has far fewer values than pixels, and can be guessed",
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


def _second_difference(subject: Subject, place: int, originals: FilePictures | None) -> NDArray[np.float32]:
    """Of a picture, less its original where that is given: each pixel and three neighbours (H - 1, W - 1, C)."""
    values = subject.protected.pixels(place)[:_CORNER, :_CORNER].astype(np.float32)
    if originals is not None:
        values -= originals.pixels(place)[:_CORNER, :_CORNER]
    return values[1:, 1:] - values[1:, :-1] - values[:-1, 1:] + values[:-1, :-1]


def _unlike(subject: Subject, places: NDArray[np.int64]) -> NDArray[np.bool_]:
    """(N, N) of pictures: whose originals differ. Those that are nearly the same lose nearly the same."""
    names = np.array([_sources(subject).files[place].sha256 for place in places])
    apart = names[:, None] != names[None, :]
    if subject.originals is not None:
        raw = replace(subject, protected=subject.originals)
        shown = np.stack([_unit(_second_difference(raw, int(place), None)) for place in places])
        apart &= np.abs(shown @ shown.T) < _ALIKE
    return np.asarray(apart)


def _unit(values: NDArray[np.float32]) -> NDArray[np.float32]:
    """Of length 1 about the mean; zeros where there is nothing but rounding."""
    flat = values.ravel() - values.mean()
    return np.asarray(flat / np.linalg.norm(flat) if flat.std() > _FAINT else np.zeros_like(flat), dtype=np.float32)


def _repeats(subject: Subject, places: NDArray[np.int64]) -> float:
    """The highest correlation of what was added with itself at some distance, the mean over pictures.

    Large values are cut off, so that the few edges of blocks do not count as a pattern.
    """
    if subject.originals is None:
        return 0.0
    seen = []
    for place in places[:_FEW_PICTURES]:
        values = _second_difference(subject, int(place), subject.originals).mean(axis=2)
        bound = 2 * float(np.median(np.abs(values)))
        if bound <= _FAINT or min(values.shape) < _NEAR * 3:
            continue
        values = values.clip(-bound, bound)
        values -= values.mean()
        rows, columns = values.shape
        padded = np.fft.rfft2(values, (2 * rows, 2 * columns))
        pairs = np.fft.irfft2(np.abs(padded) ** 2, (2 * rows, 2 * columns))
        counted = np.fft.irfft2(np.abs(np.fft.rfft2(np.ones_like(values), (2 * rows, 2 * columns))) ** 2)
        seen.append(np.where(counted > rows * columns / 4, pairs / np.maximum(counted, 1), 0.0) / (values**2).mean())
    if len(seen) < _FEWEST:
        return 0.0
    mean = np.mean(seen, axis=0)
    near = [np.minimum(places, len(places) - places) < _NEAR for places in map(np.arange, mean.shape)]
    mean[np.ix_(*near)] = 0.0  # neighbours are alike by the difference itself
    return float(mean.max())
