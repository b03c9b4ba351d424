"""Varied pictures that need no data: a coloured gradient, a figure of boxes and grain, different for each index."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from PIL import Image


def picture(index: int, height: int = 128, width: int = 64) -> NDArray[np.uint8]:
    """HWC uint8 RGB; the same index gives the same picture."""
    rng = np.random.default_rng(index)
    rows, columns = np.linspace(0, 1, height)[:, None, None], np.linspace(0, 1, width)[None, :, None]
    from_colour, to_colour, across = rng.uniform(20, 235, (3, 3))
    values = from_colour + (to_colour - from_colour) * rows + 0.3 * (across - from_colour) * columns
    for top, bottom in ((0.1, 0.25), (0.25, 0.6), (0.6, 0.95)):
        left, right = sorted(rng.uniform(0.15, 0.85, 2))
        values[int(top * height) : int(bottom * height), int(left * width) : int(right * width) + 1] = rng.uniform(
            0, 255, 3
        )
    return (values + rng.normal(0, 6, (height, width, 3))).clip(0, 255).astype(np.uint8)


def write_folder(root: Path, count: int, *, people: int = 10, height: int = 128, width: int = 64) -> None:
    """`count` JPEG files in one folder for each of `people` people."""
    for index in range(count):
        folder = root / f"person{index % people:03}"
        folder.mkdir(parents=True, exist_ok=True)
        Image.fromarray(picture(index, height, width)).save(folder / f"{index:06}.jpg", quality=90)
