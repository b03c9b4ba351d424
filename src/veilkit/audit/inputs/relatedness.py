"""Whether protected pictures were made of the originals that they are paired with, as far as pixels can tell."""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum

import cv2
import numpy as np
from numpy.typing import NDArray

_SIDE = 8  # pixels of the thumbnails that are compared
_SPREAD = 12**-0.5  # of a rank drawn evenly from [0, 1]
_SURELY, _HARDLY = 3.0, 2.0  # such spreads of the mean rank above one half
_FEWEST_ALIKE, _FEWEST_APART = 4, 8  # people, or pictures, that a verdict by ranks needs
_ALIKE, _APART = 0.7, 0.2  # correlation of the pictures of pairs that are too few for ranks
_SMOOTH = 0.5  # correlation of neighbouring pixels; of noise it is 0, of pictures near 1
_FLAT = 2.0  # of 255: a picture whose values spread less shows nothing


class Related(Enum):
    """What pixels say of pairs."""

    YES = "yes"
    NO = "no"
    UNKNOWN = "unknown"


def related(
    originals: Sequence[NDArray[np.uint8]],
    protected: Sequence[NDArray[np.uint8]],
    people: NDArray[np.int64] | None = None,
) -> Related:
    """Judge pairs of pictures (HWC uint8) by whether each protected one is more like its own original than others.

    NO needs protected pictures that show something: noise and black pictures are like nothing, whatever they were
    made of. people: (N,) codes; then others are pictures of other people.
    """
    if not originals:
        return Related.UNKNOWN
    shown = float(np.median([smoothness(picture) for picture in protected])) > _SMOOTH
    known = people is not None and len(np.unique(people)) >= _FEWEST_ALIKE
    codes = people if known and people is not None else np.arange(len(originals), dtype=np.int64)
    count = len(np.unique(codes))
    ranks = own_ranks(_thumbnails(originals), _thumbnails(protected), codes)
    if len(ranks) and count >= _FEWEST_ALIKE:
        above = (float(ranks.mean()) - 0.5) * count**0.5 / _SPREAD
        if above >= _SURELY:
            return Related.YES
        if count >= _FEWEST_APART:
            return Related.NO if shown and above < _HARDLY else Related.UNKNOWN
    alike = [_correlation(*pair) for pair in zip(originals, protected, strict=True)]
    mean = float(np.mean(alike))
    if mean >= _ALIKE:
        return Related.YES
    return Related.NO if shown and mean < _APART else Related.UNKNOWN


def own_ranks(
    originals: NDArray[np.float64], protected: NDArray[np.float64], codes: NDArray[np.int64]
) -> NDArray[np.float64]:
    """Of each protected row (N, D) the share of others' originals that are less like it than its own; ties by half.

    Of pairs drawn at random the mean is one half. Rows that are the mean of all, and so like none, are left out.

    >>> rows = np.eye(4)
    >>> own_ranks(rows, rows, np.arange(4)).tolist()
    [1.0, 1.0, 1.0, 1.0]
    """
    first, second = _unit(originals), _unit(protected)
    alike = second @ first.T
    own = np.diagonal(alike)[:, None]
    others = codes[:, None] != codes[None, :]
    usable = others.any(axis=1) & (np.abs(second).sum(axis=1) > 0) & (np.abs(first).sum(axis=1) > 0)
    less = np.where(np.isclose(alike, own), 0.5, (alike < own).astype(np.float64))
    shares = (less * others).sum(axis=1) / np.maximum(1, others.sum(axis=1))
    return np.asarray(shares[usable], dtype=np.float64)


def smoothness(picture: NDArray[np.uint8]) -> float:
    """Correlation of neighbouring pixels of a picture (HWC uint8); 0 for one that shows nothing."""
    grey = picture.astype(np.float64).mean(axis=2)
    if min(grey.shape) < 2 or grey.std() < _FLAT:
        return 0.0
    return min(_of(grey[:, 1:], grey[:, :-1]), _of(grey[1:], grey[:-1]))


def _thumbnails(pictures: Sequence[NDArray[np.uint8]]) -> NDArray[np.float64]:
    return np.stack([_thumbnail(picture).ravel() for picture in pictures])


def _thumbnail(picture: NDArray[np.uint8]) -> NDArray[np.float64]:
    return np.asarray(cv2.resize(picture, (_SIDE, _SIDE), interpolation=cv2.INTER_AREA), dtype=np.float64)


def _unit(rows: NDArray[np.float64]) -> NDArray[np.float64]:
    centred = rows - rows.mean(axis=0)
    norms = np.linalg.norm(centred, axis=1, keepdims=True)
    return np.where(norms > 1e-6, centred / np.maximum(norms, 1e-6), 0.0)


def _correlation(original: NDArray[np.uint8], protected: NDArray[np.uint8]) -> float:
    """Of two thumbnails over their places, each colour's own mean taken away."""
    one, other = (_thumbnail(each) - _thumbnail(each).mean(axis=(0, 1)) for each in (original, protected))
    return _of(one, other)


def _of(one: NDArray[np.float64], other: NDArray[np.float64]) -> float:
    one, other = one.ravel() - one.mean(), other.ravel() - other.mean()
    return float(one @ other / (np.sqrt((one @ one) * (other @ other)) + 1e-9))
