"""What is left to measure in a protected face: landmarks, gaze and expression against those of the original."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from veilkit.errors import DataError

Array = NDArray[np.float64]
PARTS: dict[int, dict[str, tuple[int, ...]]] = {
    68: {"eyes": tuple(range(36, 48)), "nose": tuple(range(27, 36)), "mouth": tuple(range(48, 68))},
    5: {"eyes": (0, 1), "nose": (2,), "mouth": (3, 4)},
}
"""Which points are which part, by how many points there are: iBUG's 68, or eyes, nose and corners of the mouth."""
_EYES = {68: (36, 45), 5: (0, 1)}


def landmark_errors(found: Array, truth: Array) -> dict[str, Array]:
    """Mean distances (N,) of points (N, P, 2) to the true ones, in % of the distance between the eyes there.

    "all" points, and each of `PARTS`. Of 68 points, the eyes' distance is that of their outer corners.
    """
    points = truth.shape[1] if truth.ndim == 3 else 0
    if points not in _EYES or found.shape != truth.shape or truth.shape[2] != 2:
        raise DataError(f"expected two sets of 68 or 5 points (N, P, 2), but got {found.shape} and {truth.shape}")
    left, right = _EYES[points]
    between = np.linalg.norm(truth[:, left] - truth[:, right], axis=1)
    if not (between > 0).all():
        raise DataError("the eyes of a face lie in one place: such landmarks are no measure")
    away = 100 * np.linalg.norm(found - truth, axis=2) / between[:, None]
    return {"all": away.mean(1), **{part: away[:, list(places)].mean(1) for part, places in PARTS[points].items()}}


def gaze_errors(found: Array, truth: Array) -> Array:
    """Angles (N,) in degrees between directions (N, 2), each a yaw and a pitch in degrees.

    >>> gaze_errors(np.array([[30.0, 0.0]]), np.array([[-15.0, 0.0]])).round(6).tolist()
    [45.0]
    """
    if found.shape != truth.shape or truth.ndim != 2 or truth.shape[1] != 2:
        raise DataError(f"expected two sets of yaw and pitch (N, 2), but got {found.shape} and {truth.shape}")
    inner = (_direction(found) * _direction(truth)).sum(1)
    return np.asarray(np.degrees(np.arccos(np.clip(inner, -1.0, 1.0))))


def expression_agreement(found: Array, truth: Array) -> Array:
    """(N,) 1 where two sets of scores (N, classes) name the same expression, else 0."""
    if found.shape != truth.shape or truth.ndim != 2:
        raise DataError(f"expected two sets of scores (N, classes), but got {found.shape} and {truth.shape}")
    return np.asarray(found.argmax(1) == truth.argmax(1), dtype=np.float64)


def _direction(gaze: Array) -> Array:
    yaw, pitch = np.radians(gaze).T
    return np.stack([np.cos(pitch) * np.sin(yaw), np.sin(pitch), np.cos(pitch) * np.cos(yaw)], 1)
