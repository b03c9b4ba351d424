"""dlib's face network: 29 convolutions in residual blocks, 150x150 pixels to 128 numbers.

The shape follows the network of dlib's `face_recognition_model_v1` (D. King, 2017), itself after He et al. 2016 with
fewer layers and half the filters. Each affine layer, a batch norm at rest, is part of the convolution before it.
"""

from __future__ import annotations

from typing import cast

import torch
import torch.nn.functional as F
from torch import Tensor, nn

SIDE = 150
LENGTH = 128
MEAN = (122.782, 117.001, 104.298)  # of red, green and blue in [0, 255]; a network's file has its own
_SCALE = 256.0
STEM = 32
# Filters of each block, in the order the image meets them; a block that halves the map is marked.
BLOCKS = (
    *((32, False),) * 3,
    (64, True),
    *((64, False),) * 3,
    (128, True),
    *((128, False),) * 2,
    (256, True),
    *((256, False),) * 2,
    (256, True),
)


class DlibBlock(nn.Module):
    """Two 3x3 convolutions beside a shortcut; one that halves strides without padding and averages the shortcut.

    Where the two differ in size or channels, the smaller is taken as zero beyond its end, as dlib does.
    """

    def __init__(self, inputs: int, outputs: int, *, halves: bool) -> None:
        super().__init__()
        self.halves = halves
        self.first = nn.Conv2d(inputs, outputs, 3, 2 if halves else 1, 0 if halves else 1)
        self.second = nn.Conv2d(outputs, outputs, 3, 1, 1)

    def forward(self, maps: Tensor) -> Tensor:
        """(N, inputs, H, W) -> (N, outputs, H, W), or half of H and W."""
        found = self.second(F.relu(self.first(maps)))
        shortcut = F.avg_pool2d(maps, 2) if self.halves else maps
        size = [max(one, other) for one, other in zip(found.shape[1:], shortcut.shape[1:], strict=True)]
        return F.relu(_padded(found, size) + _padded(shortcut, size))


class DlibResNet(nn.Module):
    """Images (N, 3, 150, 150), RGB in [0, 1] -> raw features (N, 128); normalisation is inside."""

    mean: Tensor

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("mean", torch.tensor(MEAN)[:, None, None])
        self.stem = nn.Conv2d(3, STEM, 7, 2)
        inputs = STEM
        blocks = []
        for outputs, halves in BLOCKS:
            blocks.append(DlibBlock(inputs, outputs, halves=halves))
            inputs = outputs
        self.blocks = nn.Sequential(*blocks)
        self.head = nn.Linear(inputs, LENGTH, bias=False)

    def forward(self, images: Tensor) -> Tensor:
        """Of aligned faces, as dlib's `get_face_chip` cuts them."""
        maps = F.relu(self.stem((images * 255 - self.mean) / _SCALE))
        maps = self.blocks(F.max_pool2d(maps, 3, 2))
        return cast(Tensor, self.head(maps.mean((2, 3))))


def _padded(maps: Tensor, size: list[int]) -> Tensor:
    """`maps` (N, C, H, W) with zeros behind, up to `size` = [C, H, W]."""
    more = [want - have for want, have in zip(size, maps.shape[1:], strict=True)]
    return F.pad(maps, (0, more[2], 0, more[1], 0, more[0])) if any(more) else maps
