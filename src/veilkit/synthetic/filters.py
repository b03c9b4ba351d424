"""Resizing and blurring of float pictures, (H, W) or (H, W, C)."""

from __future__ import annotations

import cv2
import numpy as np

from veilkit.synthetic.view import Floats


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
