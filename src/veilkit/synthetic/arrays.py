"""Arrays of floats: pictures that are resized, blurred and clouded, and smooth functions that shapes are made of."""

from __future__ import annotations

from typing import Any, TypeAlias

import cv2
import numpy as np
from numpy.typing import NDArray
from scipy.interpolate import PchipInterpolator

Floats = NDArray[np.float32]
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


def resize(picture: Floats, height: int, width: int) -> Floats:
    """`picture` at another size: averaged where it shrinks, interpolated where it grows."""
    way = cv2.INTER_AREA if height < picture.shape[0] else cv2.INTER_LINEAR
    return np.asarray(cv2.resize(picture, (width, height), interpolation=way), np.float32)


def blur(picture: Floats, sigma: float) -> Floats:
    """`picture` through a Gaussian of standard deviation `sigma` pixels."""
    return np.asarray(cv2.GaussianBlur(picture, (0, 0), sigma), np.float32)


def warp(picture: Floats, matrix: Floats) -> Floats:
    """`picture` through the affine map `matrix` (2, 3), source to target; zero comes in from outside."""
    return np.asarray(cv2.warpAffine(picture, matrix, (picture.shape[1], picture.shape[0])), np.float32)


def clouds(rng: np.random.Generator, height: int, width: int, cell: int) -> Floats:
    """Smooth noise (height, width) of about unit deviation with features `cell` pixels wide."""
    coarse = rng.standard_normal((height // cell + 2, width // cell + 2), dtype=np.float32)
    return np.asarray(cv2.resize(coarse, (width, height), interpolation=cv2.INTER_CUBIC), np.float32)
