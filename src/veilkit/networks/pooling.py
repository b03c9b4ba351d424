"""Generalised-mean pooling (Radenovic et al., TPAMI 2019), from the mean (p = 1) to the maximum (p -> infinity)."""

from __future__ import annotations

import torch
from torch import Tensor, nn


def generalised_mean(maps: Tensor, p: Tensor, floor: float = 1e-6) -> Tensor:
    """(N, C, H, W) -> (N, C): (mean of x^p)^(1/p) over the map, of values raised to at least `floor`."""
    return maps.clamp(min=floor).pow(p).mean((2, 3)).pow(1 / p)


class GeM(nn.Module):
    """Generalised-mean pooling with a learned exponent, started at AGW's 3."""

    def __init__(self, p: float = 3.0) -> None:
        super().__init__()
        self.p = nn.Parameter(torch.tensor([p]))

    def forward(self, maps: Tensor) -> Tensor:
        """(N, C, H, W) -> (N, C)."""
        return generalised_mean(maps, self.p)
