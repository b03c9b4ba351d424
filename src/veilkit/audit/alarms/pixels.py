"""Protected pictures that are no protection: equal to their originals, or all the same."""

from __future__ import annotations

import hashlib
from collections import Counter

import numpy as np
from numpy.typing import NDArray

from veilkit.audit.inputs.pictures import FilePictures
from veilkit.audit.inputs.subject import Subject
from veilkit.audit.result import Alarm

_NEARLY = 45.0  # dB of PSNR: what a JPEG of the best quality does to a picture, and no protection
_FLAT = 2.0  # of 255: an original whose values spread less has nothing to hide
_LOOKED_AT = 2000  # pictures at most, evenly chosen
_MOST = 0.5  # of the pictures that must be the same


def check_pixels(subject: Subject) -> tuple[Alarm, ...]:
    """Compare protected pictures with their originals and with each other."""
    count = len(subject.protected)
    places = np.unique(np.linspace(0, count - 1, min(count, _LOOKED_AT)).astype(int))
    alarms = []
    if subject.originals is not None and (near := _unchanged(subject.originals, subject.protected, places)):
        alarms.append(
            Alarm(
                "unchanged",
                f"{near} of {len(places)} protected pictures that were looked at equal their originals, or differ "
                f"less than a good JPEG does ({_NEARLY:g} dB): they are not protected",
            )
        )
    same, flat = _same(subject.protected, places)
    different = len({file.sha256 for file in _sources(subject).files})
    if len(places) > 1 and different > 1 and max(same, flat) > _MOST * len(places):
        what = "are one and the same picture" if same >= flat else "have one single colour value"
        alarms.append(
            Alarm(
                "constant",
                f"{max(same, flat)} of {len(places)} protected pictures {what}: nothing can be found in them and "
                "nothing can be done with them. Scores of privacy say nothing of a protection here",
            )
        )
    return tuple(alarms)


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
