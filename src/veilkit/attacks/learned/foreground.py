"""Where the person stands in a real picture of a pedestrian: an estimate from the original, never the release."""

from __future__ import annotations

import cv2
import numpy as np
from numpy.typing import NDArray

from veilkit.attacks.people_split import pixels
from veilkit.attacks.pictures import Pictures
from veilkit.attacks.target import Masks

_ROUNDS = 4
_CORE = (0.30, 0.70, 0.40, 0.60)  # top, bottom, left and right of what is surely a pedestrian in a detector's box
_BORDER = 0.04  # of the width, on the left and right, that is surely not
_LEAST = 8  # pixels a side; below, there is nothing to cut out


def foreground(pictures: Pictures, size: tuple[int, int]) -> Masks:
    """Masks (N, H, W) of pictures of one upright person each, by GrabCut (Rother et al. 2004) from a central box.

    An estimate from the originals, never the release: it takes bags and shadows for people, and misses those dressed
    like the wall behind them. Wrong masks make every attacker look weaker, so figures compare only among releases of
    the same originals, under the same masks; what nobody can do without looking (noise, the mean mask) is measured
    with them too.
    """
    images = pixels(pictures, size).permute(0, 2, 3, 1).numpy()
    if min(size) < _LEAST:
        return Masks(np.zeros((len(images), *size), dtype=np.bool_), "none: the pictures are too small")
    return Masks(np.stack([_cut(image) for image in images]), "estimated from the originals by GrabCut")


def _cut(image: NDArray[np.uint8]) -> NDArray[np.bool_]:
    height, width = image.shape[:2]
    marks = np.full((height, width), cv2.GC_PR_FGD, dtype=np.uint8)
    border = max(1, round(_BORDER * width))
    marks[:, :border] = marks[:, -border:] = cv2.GC_BGD
    top, bottom, left, right = (round(share * side) for share, side in
                                zip(_CORE, (height, height, width, width), strict=True))  # fmt: skip
    marks[top:bottom, left:right] = cv2.GC_FGD
    background, person = np.zeros((1, 65)), np.zeros((1, 65))
    cv2.setRNGSeed(0)  # its clusters start at random
    cv2.grabCut(
        np.ascontiguousarray(image[..., ::-1]),
        marks,
        (0, 0, 1, 1),
        background,
        person,
        _ROUNDS,
        cv2.GC_INIT_WITH_MASK,
    )
    return np.isin(marks, (cv2.GC_FGD, cv2.GC_PR_FGD))
