"""Smooth functions that features are made of."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy.interpolate import PchipInterpolator

from veilkit.synthetic.view import Floats

Reals: TypeAlias = NDArray[np.floating[Any]]


def bell(x: Reals, width: float) -> Floats:
    """exp(-x^2 / 2 width^2)."""
    return np.asarray(np.exp(-0.5 * np.square(x / np.float32(width))), np.float32)


def spot(u: Reals, v: Reals, at: tuple[float, float], size: tuple[float, float]) -> Floats:
    """A smooth bump of height one at (u, v) = `at`."""
    return np.asarray(
        np.exp(-0.5 * (np.square((u - at[0]) / size[0]) + np.square((v - at[1]) / size[1]))), np.float32
    )


def step(x: Reals, low: float | Reals, high: float | Reals) -> Floats:
    """A smooth step from 0 at `low` to 1 at `high`, which may lie on either side."""
    t = np.clip((x - low) / (high - low), 0, 1)
    return np.asarray(t * t * (3 - 2 * t), np.float32)


def curve(x: Reals, *places: tuple[float, float]) -> Floats:
    """A smooth curve through (x, value) places, of rising x, constant beyond them."""
    at = np.array(places, np.float64)
    return np.asarray(PchipInterpolator(at[:, 0], at[:, 1])(np.clip(x, at[0, 0], at[-1, 0])), np.float32)
