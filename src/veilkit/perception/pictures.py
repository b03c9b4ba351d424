"""The pictures of a study: read safely, brought to one size, and encoded anew without metadata.

All pictures of a page have one size and one format. The shape of a protected picture is that of its original, and so
would tell which one is right.
"""

from __future__ import annotations

import base64
from collections.abc import Iterable

import cv2
import numpy as np
from numpy.typing import NDArray

from veilkit.errors import DataError, RefusedImage
from veilkit.media.reading import Limits, decode, read_bytes
from veilkit.media.writing import encode
from veilkit.perception.material import Picture

LARGEST = 256  # of the longer side, in pixels; smaller pictures stay as they are
_GLANCE = (4, 8)  # width and height


class Shelf:
    """Reads pictures when they are asked for, and remembers which can be read."""

    def __init__(self, limits: Limits | None = None) -> None:
        self._limits = limits or Limits()
        self._glances: dict[tuple[str, str], NDArray[np.float32] | None] = {}
        self._sizes: dict[tuple[str, str], tuple[int, int]] = {}

    def look(self, picture: Picture) -> NDArray[np.float32] | None:
        """A few colours of a picture, (8, 4, 3) in [0, 255]; None where it cannot be read."""
        place = (str(picture.root), picture.path)
        if place not in self._glances:
            try:
                pixels = self._pixels(picture)
            except RefusedImage:
                self._glances[place] = None
            else:
                self._sizes[place] = (pixels.shape[0], pixels.shape[1])
                self._glances[place] = _resized(pixels, _GLANCE).astype(np.float32)
        return self._glances[place]

    @property
    def refused(self) -> int:
        """How many of the pictures looked at could not be read."""
        return sum(glance is None for glance in self._glances.values())

    def size(self, pictures: Iterable[Picture]) -> tuple[int, int]:
        """Height and width for a page: the median of pictures that were looked at, of at most LARGEST."""
        sizes = np.array([self._sizes[str(each.root), each.path] for each in pictures])
        height, width = np.median(sizes, axis=0)
        scale = min(1.0, LARGEST / max(height, width))
        return max(1, round(height * scale)), max(1, round(width * scale))

    def address(self, picture: Picture, size: tuple[int, int]) -> str:
        """The picture at (height, width) as a data address of a PNG; its bytes follow from its pixels alone."""
        try:
            pixels = self._pixels(picture)
        except RefusedImage as refusal:
            raise DataError(f"a picture changed while the study was made: {refusal.reason}; try again") from None
        if pixels.shape[:2] != size:
            pixels = _resized(pixels, (size[1], size[0]))
        return "data:image/png;base64," + base64.b64encode(encode(pixels, "png")).decode()

    def _pixels(self, picture: Picture) -> NDArray[np.uint8]:
        return decode(read_bytes(picture.root / picture.path, self._limits), self._limits)


def _resized(pixels: NDArray[np.uint8], size: tuple[int, int]) -> NDArray[np.uint8]:
    """Stretched to (width, height), as recognisers do it: to cut would lose heads, to pad would show the shape."""
    smaller = size[0] * size[1] < pixels.shape[0] * pixels.shape[1]
    way = cv2.INTER_AREA if smaller else cv2.INTER_CUBIC
    return np.asarray(cv2.resize(np.ascontiguousarray(pixels), size, interpolation=way), dtype=np.uint8)
