"""The grid along which pictures were cut: found from the pictures themselves, and how to cut and join along it."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from torch import Tensor

from veilkit.attacks.pictures import Pictures, SomePictures

Patches = NDArray[np.float32]
"""(P, h, w, 3) in [0, 1]: picture by picture, in each row by row."""

_LOOKED_AT = 64  # pictures are enough to see a grid
_SMALLEST = 4  # pixels: a cell's side; below, a seam has no surroundings to differ from
_JUMP = 1.5  # times the steps beside it: compression of 8 x 8 blocks stays below 1.2, cuts reach 3 and more
_SURE = 6.0  # robust standard deviations above the other steps
_FLAT = 2.0 / 255.0  # a cell of less contrast is one colour
_MOST_FLAT = 0.75  # a share of such cells above this is a mosaic


@dataclass(frozen=True, slots=True)
class Grid:
    """Cells of `height` x `width` pixels, from the top left corner of pictures of one size; the last may be cut."""

    height: int
    width: int

    def shape(self, size: tuple[int, int]) -> tuple[int, int]:
        """Rows and columns in pictures of a size (H, W)."""
        return -(-size[0] // self.height), -(-size[1] // self.width)

    def cut(self, images: Tensor) -> Patches:
        """Images (N, 3, H, W) to patches (N rows columns, h, w, 3); cut ones are filled up with their last pixels."""
        count, _, height, width = images.shape
        rows, columns = self.shape((height, width))
        extra = (0, columns * self.width - width, 0, rows * self.height - height)
        full = F.pad(images, extra, mode="replicate") if any(extra) else images
        cells = full.reshape(count, 3, rows, self.height, columns, self.width).permute(0, 2, 4, 3, 5, 1)
        return cells.reshape(-1, self.height, self.width, 3).contiguous().numpy()

    def join(self, patches: Patches, size: tuple[int, int]) -> Tensor:
        """The images (N, 3, H, W) of patches that were cut at this size."""
        rows, columns = self.shape(size)
        cells = torch.from_numpy(patches).reshape(-1, rows, columns, self.height, self.width, 3)
        full = cells.permute(0, 5, 1, 3, 2, 4).reshape(-1, 3, rows * self.height, columns * self.width)
        return full[:, :, : size[0], : size[1]].contiguous()


def find_grid(pictures: Pictures) -> Grid | None:
    """The grid along which pictures of one size were cut; None where no seams are seen, or the cells hold nothing.

    A cut leaves steps between two lines of pixels that are larger than those before and after, at regular distances
    and in all pictures. The cells of a mosaic have seams as well, but hold one colour each: nothing to reassemble.
    """
    chosen = np.unique(np.linspace(0, len(pictures) - 1, _LOOKED_AT).astype(np.int64))
    height, width = (int(side) for side in pictures.sizes[0])
    if min(height, width) < 2 * _SMALLEST:
        return None
    down, across, seen = np.zeros(height - 1), np.zeros(width - 1), []
    for _, images in SomePictures(pictures, chosen).batches():
        down += (images[:, :, 1:] - images[:, :, :-1]).abs().mean(dim=(1, 3)).sum(dim=0).double().numpy()
        across += (images[..., 1:] - images[..., :-1]).abs().mean(dim=(1, 2)).sum(dim=0).double().numpy()
        seen.append(images)
    grid = Grid(_period(down / len(chosen)) or height, _period(across / len(chosen)) or width)
    if grid == Grid(height, width):
        return None
    contrast = np.concatenate([grid.cut(images).std(axis=(1, 2)).max(axis=1) for images in seen])
    return None if (contrast < _FLAT).mean() > _MOST_FLAT else grid


def _period(steps: NDArray[np.float64]) -> int | None:
    """The smallest distance at which every step (side - 1,) stands out from its neighbours and from the others."""
    side = len(steps) + 1
    middle = float(np.median(steps))
    spread = 1.4826 * float(np.median(np.abs(steps - middle))) + 1e-6
    beside = np.empty_like(steps)
    beside[1:-1] = (steps[:-2] + steps[2:]) / 2
    beside[[0, -1]] = np.inf
    stands_out = (steps > _JUMP * beside) & (steps > middle + _SURE * spread)
    for period in range(_SMALLEST, -(-side // 2) + 1):
        if stands_out[period - 1 :: period].all():
            return period
    return None
