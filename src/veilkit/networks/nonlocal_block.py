"""Non-local block: every place of a map looks at every other one (Wang et al., CVPR 2018), as AGW uses it."""

from __future__ import annotations

import torch
from torch import Tensor, nn


class NonLocalBlock(nn.Module):
    """x + norm(W (theta(x) phi(x)^T / P) g(x)) over the P places of the map.

    The last norm starts at zero, so that a new block leaves a pretrained network as it was.
    """

    def __init__(self, channels: int, reduction: int = 2) -> None:
        super().__init__()
        hidden = channels // reduction
        self.theta = nn.Conv2d(channels, hidden, 1)
        self.phi = nn.Conv2d(channels, hidden, 1)
        self.value = nn.Conv2d(channels, hidden, 1)
        self.expand = nn.Conv2d(hidden, channels, 1)
        self.norm = nn.BatchNorm2d(channels)
        nn.init.zeros_(self.norm.weight)
        nn.init.zeros_(self.norm.bias)

    def forward(self, maps: Tensor) -> Tensor:
        """(N, C, H, W) -> (N, C, H, W)."""
        theta, phi, value = (part(maps).flatten(2) for part in (self.theta, self.phi, self.value))
        attention = torch.einsum("ncp,ncq->npq", theta, phi) / theta.shape[2]
        mixed = torch.einsum("npq,ncq->ncp", attention, value).reshape(len(maps), -1, *maps.shape[2:])
        out: Tensor = maps + self.norm(self.expand(mixed))
        return out
