"""What a set of pictures has in common: their mean, and the axes along which they vary most.

Random mixtures of these look like blurred pictures of nobody. They are where feature assembling may begin: a body
or a face stands in the right place, so that few steps are left to do.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import torch
import torch.nn.functional as F
from torch import Tensor

from veilkit.errors import DataError

FEWEST = 64  # pictures; of fewer, the axes would show the pictures themselves
_SHARED = 16  # pictures for each axis at least, so that no axis belongs to one of them
_MOST_AXES = 128
_MOST_PICTURES = 4096


@dataclass(frozen=True, slots=True)
class PrincipalComponents:
    """mean: (3, h, w) in [0, 1]. axes: (K, 3, h, w), principal components, each one standard deviation long."""

    mean: Tensor
    axes: Tensor

    @classmethod
    def of(cls, pixels: Tensor) -> Self:
        """Of pictures (N, 3, H, W) of 8 bits, at half their size; of very many, some at equal distances."""
        if len(pixels) < FEWEST:
            raise DataError(f"expected at least {FEWEST} pictures to see what they have in common, got {len(pixels)}")
        count = min(len(pixels), _MOST_PICTURES)
        some = pixels[torch.arange(count) * len(pixels) // count]
        small = torch.cat([F.avg_pool2d(part.float().div(255), 2) for part in torch.split(some, 256)])
        mean = small.mean(0)
        apart = (small - mean).flatten(1)
        wanted = min(_MOST_AXES, count // _SHARED, apart.shape[1])
        if count <= apart.shape[1]:
            _, mixtures = torch.linalg.eigh(apart @ apart.T)  # ascending
            axes = mixtures.flip(1)[:, :wanted].T @ apart / count**0.5
        else:
            variances, directions = torch.linalg.eigh(apart.T @ apart / count)
            axes = (directions * variances.clamp(min=0).sqrt()).flip(1)[:, :wanted].T
        return cls(mean, axes.reshape(wanted, *mean.shape).contiguous())

    def mixed(self, weights: Tensor, size: tuple[int, int]) -> Tensor:
        """Pictures (N, 3, *size) in [0, 1] of `weights` (N, K): drawn from N(0, 1), they vary as the set does."""
        drawn = self.mean + torch.einsum("nk,kchw->nchw", weights, self.axes)
        return F.interpolate(drawn, size=size, mode="bilinear", align_corners=False).clamp(0, 1)
