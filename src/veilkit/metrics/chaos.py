"""Chaos of pixels: how far an image's values are from a normal distribution (PixelFade, Figure 1a)."""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.special import log_ndtr
from torch import Tensor

from veilkit.metrics.inputs import unit_images


def anderson_darling(images: Tensor) -> Tensor:
    """Anderson-Darling statistic against the normal, over all values of each of (N, 3, H, W) in [0, 1]: (N,) float64.

    Near 0 for normal values; it grows with the number of values, so compare images of one size only. A low value
    alone proves no privacy: a photo whose values are reshaped to a normal distribution scores near 0 too. A constant
    image, for which the statistic is not defined, gives infinity: nothing is less chaotic.
    """
    flat = unit_images(images, "images").detach().cpu().double().flatten(1).numpy()
    return torch.tensor([_statistic(values) for values in flat], dtype=torch.float64)


def _statistic(values: NDArray[np.float64]) -> float:
    """A^2 = -n - (1/n) sum (2i - 1) [ln F(z_i) + ln(1 - F(z_(n+1-i)))], mean and deviation from the data.

    This is `scipy.stats.anderson(values, "norm").statistic`, whose call signature changes between SciPy's versions.
    """
    ordered = np.sort(values)
    if ordered[0] == ordered[-1]:
        return float("inf")
    n = len(ordered)
    z = (ordered - ordered.mean()) / ordered.std(ddof=1)
    weights = np.arange(1, 2 * n, 2) / n
    return float(-n - (weights * (log_ndtr(z) + log_ndtr(-z[::-1]))).sum())
