"""Kernel distance (KID, Binkowski et al. 2018): how far generated pictures are from real ones, by their features."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from veilkit.errors import DataError


def kernel_distance(one: NDArray[np.floating], other: NDArray[np.floating]) -> float:
    """Squared maximum mean discrepancy of features (N, D) and (M, D), unbiased, under (x y / D + 1)^3.

    About 0 for two samples of one kind, and then as often below 0 as above.
    """
    if one.ndim != 2 or other.ndim != 2 or one.shape[1] != other.shape[1] or min(len(one), len(other)) < 2:
        raise DataError(
            f"expected features (N, D) and (M, D) of two or more each, but got {one.shape}, {other.shape}"
        )
    x, y = one.astype(np.float64), other.astype(np.float64)

    def kernel(a: NDArray[np.float64], b: NDArray[np.float64]) -> NDArray[np.float64]:
        return np.asarray((a @ b.T / a.shape[1] + 1) ** 3)

    def among(a: NDArray[np.float64]) -> float:
        values = kernel(a, a)
        return float((values.sum() - np.trace(values)) / (len(a) * (len(a) - 1)))

    return among(x) + among(y) - 2 * float(kernel(x, y).mean())
