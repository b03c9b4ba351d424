"""What files of a release may have in common from outside: the size of their pictures, and their size in bytes."""

from __future__ import annotations

import re
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from veilkit.errors import ConfigError

_LONGEST, _MOST = 32_767, 50_000_000  # pixels: a side, and a picture, as large as are read unless more is allowed


@dataclass(frozen=True, slots=True)
class Shape:
    """size: width and height of every picture, or None for each its own. A picture is fitted in, between black bars.

    stretch: it fills the size instead, whatever its proportions. even_files: PNG files are not compressed, so that
    their sizes tell nothing but the size in pixels.
    """

    size: tuple[int, int] | None = None
    stretch: bool = False
    even_files: bool = False

    def __post_init__(self) -> None:
        if self.size is None:
            if self.stretch:
                raise ConfigError("stretch needs a size to stretch to: give a size too")
        elif not (all(1 <= side <= _LONGEST for side in self.size) and self.size[0] * self.size[1] <= _MOST):
            raise ConfigError(
                f"a size must have sides of 1 to {_LONGEST} pixels and at most {_MOST} in all, but got "
                f"{self.size[0]}x{self.size[1]}"
            )

    @classmethod
    def parse(cls, size: str | None, *, stretch: bool = False, even_files: bool = False) -> Shape:
        """From a size as people write it: WIDTHxHEIGHT."""
        found = re.fullmatch(r"(\d{1,5})x(\d{1,5})", size or "")
        if size is not None and found is None:
            raise ConfigError(f"a size is WIDTHxHEIGHT in pixels, such as 256x128, but got {size!r}")
        return cls((int(found[1]), int(found[2])) if found else None, stretch, even_files)

    def __str__(self) -> str:
        """What tells two shapes apart; nothing where nothing is asked for."""
        size = "" if self.size is None else f" {self.size[0]}x{self.size[1]}{' stretched' * self.stretch}"
        return size + " even files" * self.even_files

    def fitted(self, pixels: NDArray[np.uint8]) -> NDArray[np.uint8]:
        """HWC uint8 pixels in the common size."""
        if self.size is None:
            return pixels
        wide, high = self.size
        height, width = pixels.shape[:2]
        if self.stretch:
            return resized(pixels, high, wide)
        scale = min(wide / width, high / height)
        inner = resized(pixels, min(high, max(1, round(scale * height))), min(wide, max(1, round(scale * width))))
        framed = np.zeros((high, wide, 3), np.uint8)
        top, left = (high - inner.shape[0]) // 2, (wide - inner.shape[1]) // 2
        framed[top : top + inner.shape[0], left : left + inner.shape[1]] = inner
        return framed


def resized(pixels: NDArray[np.uint8], height: int, width: int) -> NDArray[np.uint8]:
    """HWC uint8 pixels in another size."""
    if pixels.shape[:2] == (height, width):
        return pixels
    import cv2  # only pictures of unequal sizes have to pay for it

    cv2.setNumThreads(1)
    interpolation = cv2.INTER_AREA if pixels.shape[0] > height else cv2.INTER_LINEAR
    return np.asarray(cv2.resize(pixels, (width, height), interpolation=interpolation), dtype=np.uint8)
