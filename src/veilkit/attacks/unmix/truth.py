"""Which original was truly blended into each picture. For scoring only: an adversary has no originals."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from veilkit.attacks.pictures import Pictures, resized

_POINTS = (48, 24)  # to which pictures are shrunk before they are compared
_EXPLAINED = 0.1  # the share of a picture's difference to its original that another may leave unexplained


def second_sources(blended: Pictures, originals: Pictures) -> NDArray[np.int64]:
    """(N,): the original j for which y_i - x_i = a (x_j - x_i) holds best, for some a; -1 where none explains it."""
    y, x = _points(blended), _points(originals)
    change = y - x
    found = np.full(len(x), -1, dtype=np.int64)
    for i in range(len(x)):
        towards = x - x[i]
        power = np.square(towards).sum(axis=1)
        along = towards @ change[i]
        along[(power < 1e-9) | (along <= 0)] = 0.0
        explained = np.square(along) / np.maximum(power, 1e-9)
        best = int(np.argmax(explained))
        total = float(np.square(change[i]).sum())
        if total > 0 and explained[best] >= (1 - _EXPLAINED) * total:
            found[i] = best
    return found


def _points(pictures: Pictures) -> NDArray[np.float32]:
    points = np.empty((len(pictures), 3 * _POINTS[0] * _POINTS[1]), dtype=np.float32)
    for part, images in pictures.batches():
        points[part] = resized(images, _POINTS).flatten(1).numpy()
    return points
