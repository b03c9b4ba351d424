"""Where a new face covers the old one in an aligned crop."""

from __future__ import annotations

import torch
from torch import Tensor

_MIDDLE, _RADII = (0.5, 0.53), (0.42, 0.45)  # of the ellipse in a crop, x and y, as shares: hairline to chin
_SOLID = 0.8  # share of its radius in which the new face covers the old one fully


def feather(size: int) -> Tensor:
    """(size, size): 1 over the face, falling smoothly to 0 at an ellipse inside of the crop."""
    at = (torch.arange(size, dtype=torch.float32) + 0.5) / size
    x, y = (at - _MIDDLE[0]) / _RADII[0], (at - _MIDDLE[1]) / _RADII[1]
    radius = (x[None, :].square() + y[:, None].square()).sqrt()
    ramp = ((1 - radius) / (1 - _SOLID)).clamp(0, 1)
    return ramp * ramp * (3 - 2 * ramp)
