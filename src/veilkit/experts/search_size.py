"""How large a picture is when faces are looked for in it, so that no shape of it harms the search."""

from __future__ import annotations

import math

LEAST_SIDE = 8
"""Pixels. In a narrower picture no detector finds a face, and some break on it."""
LONGEST_SIDE = 16_384
"""Pixels, below what OpenCV and dlib count to, also where they enlarge a picture."""


def search_size(height: int, width: int, most_pixels: int) -> tuple[int, int] | None:
    """Height and width to look for faces in; None where the picture is too narrow to hold one that can be found.

    >>> search_size(100, 200, 1_000_000)
    (100, 200)
    >>> search_size(2000, 4000, 2_000_000)
    (1000, 2000)
    >>> search_size(1, 49_000_000, 1_000_000) is None
    True
    """
    if min(height, width) < LEAST_SIDE:
        return None
    scale = min(1.0, math.sqrt(most_pixels / (height * width)), LONGEST_SIDE / max(height, width))
    size = round(height * scale), round(width * scale)
    return size if min(size) >= LEAST_SIDE else None
