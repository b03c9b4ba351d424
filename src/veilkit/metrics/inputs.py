"""Checked inputs of the metrics: tensors or arrays in, NumPy arrays of one known shape and type out."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from veilkit.errors import DataError

Values: TypeAlias = NDArray[Any] | Tensor | Sequence[int] | Sequence[float] | Sequence[bool]


def _to_numpy(values: Values) -> NDArray[Any]:
    if not isinstance(values, Tensor):
        return np.asarray(values)
    values = values.detach().cpu()
    return (values.float() if values.dtype == torch.bfloat16 else values).numpy()  # NumPy has no bfloat16


def finite_features(values: Values, name: str) -> NDArray[np.float32]:
    """Features as a finite float32 array of shape (N, D), N and D at least 1."""
    # Writable, since torch warns of sharing memory that is not.
    features = np.require(_to_numpy(values), dtype=np.float32, requirements=["C", "W"])
    if features.ndim != 2 or 0 in features.shape:
        raise DataError(f"{name} must have two dimensions, none of them 0, but got shape {features.shape}")
    if not np.isfinite(features).all():
        raise DataError(f"{name} must be finite, but hold NaN or infinity; check the model that made them")
    return features


def finite_values(values: Values, name: str) -> NDArray[np.float64]:
    """Numbers as a finite float64 array of shape (N,), N at least 1."""
    numbers = np.asarray(_to_numpy(values), dtype=np.float64)
    if numbers.ndim != 1 or not len(numbers):
        raise DataError(f"{name} must be one-dimensional and not empty, but got shape {numbers.shape}")
    if not np.isfinite(numbers).all():
        raise DataError(f"{name} must be finite, but hold NaN or infinity; leave such items out first")
    return numbers


def whole_numbers(values: Values, name: str, count: int) -> NDArray[np.int64]:
    """Labels as an int64 array of shape (count,)."""
    labels = _to_numpy(values)
    if labels.shape != (count,):
        raise DataError(f"{name} must have shape ({count},), one for each item, but got shape {labels.shape}")
    if labels.dtype.kind not in "iub":
        raise DataError(f"{name} must be whole numbers, but got {labels.dtype}; number the names first")
    return labels.astype(np.int64)


def unit_images(images: Tensor, name: str) -> Tensor:
    """The images themselves, once known to be floating (N, 3, H, W) with all values in [0, 1]."""
    if images.ndim != 4 or images.shape[1] != 3 or not images.numel() or not images.is_floating_point():
        raise DataError(
            f"{name} must be a floating tensor of shape (N, 3, H, W), but got {images.dtype} {tuple(images.shape)}"
        )
    low, high = (float(bound) for bound in torch.aminmax(images.detach()))
    if not (low >= 0.0 and high <= 1.0):  # also true for NaN
        raise DataError(f"{name} must lie in [0, 1], but span [{low:g}, {high:g}]; divide 8-bit values by 255")
    return images


def l2_normalised(features: NDArray[np.float32]) -> NDArray[np.float32]:
    """Rows scaled to length 1; an all-zero row stays zero and so has similarity 0 to everything."""
    # The largest entry is divided out first: squares of large or tiny float32 features leave the range.
    largest = np.abs(features).max(axis=1, keepdims=True)
    scaled = features / np.where(largest == 0.0, np.float32(1.0), largest)
    lengths = np.linalg.norm(scaled, axis=1, keepdims=True)
    return (scaled / np.where(lengths == 0.0, np.float32(1.0), lengths)).astype(np.float32, copy=False)
