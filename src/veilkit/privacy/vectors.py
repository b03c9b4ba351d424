"""Vectors on their way into a mechanism: bounded in sight of the caller, checked where a proof rests on it."""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from veilkit.errors import DataError

TOLERANCE = 1e-4  # how far float32 and float16 arithmetic may leave a normalised vector from norm 1


def unit(features: Tensor) -> Tensor:
    """Features (N, D) divided by their L2 norms: what every sound mechanism expects.

    A row of zeros has no direction and is refused.
    """
    found = rows(features)
    norms = np.linalg.norm(found, axis=1)
    if empty := np.flatnonzero(norms == 0.0).tolist():
        raise DataError(
            f"a vector of zeros has no direction, but row {empty[0]} is one (of {len(empty)}): leave it out"
        )
    return torch.from_numpy(found / norms[:, None]).to(features)


def rows(vectors: Tensor, *, dimension: int | None = None) -> NDArray[np.float64]:
    """Vectors as a finite float64 array (N, D), with D as given."""
    if not isinstance(vectors, Tensor) or not vectors.is_floating_point():
        what = vectors.dtype if isinstance(vectors, Tensor) else type(vectors).__name__
        raise DataError(f"vectors must be a floating tensor of shape (N, D), but got {what}")
    if vectors.ndim != 2 or 0 in vectors.shape:
        raise DataError(f"vectors must have shape (N, D), neither of them 0, but got {tuple(vectors.shape)}")
    if dimension is not None and vectors.shape[1] != dimension:
        raise DataError(f"this mechanism was made for vectors of {dimension}, but got vectors of {vectors.shape[1]}")
    found = vectors.detach().cpu().double().numpy()
    if not np.isfinite(found).all():
        raise DataError("vectors must be finite, but hold NaN or infinity; check the model that made them")
    return found


def unit_rows(vectors: Tensor, *, dimension: int) -> NDArray[np.float64]:
    """Unit vectors as a float64 array (N, D), of norm 1 to the last digits.

    Refuses rows whose norm is not 1 to within TOLERANCE: a sensitivity of 2 holds for unit vectors only. What
    rounding has left of a normalised vector is taken off here, so that the bound holds exactly.
    """
    found = rows(vectors, dimension=dimension)
    norms = np.linalg.norm(found, axis=1)
    wrong = np.flatnonzero(np.abs(norms - 1.0) > TOLERANCE)
    if len(wrong):
        raise DataError(
            f"expected unit vectors, but {len(wrong)} of {len(norms)} are not, the first (row {wrong[0]}) with norm "
            f"{norms[wrong[0]]:.4g}: the guarantee rests on norm 1, so pass veilkit.privacy.unit(features)"
        )
    return np.asarray(found / norms[:, None])
