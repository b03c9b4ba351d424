"""Faces to crops and back: a similarity that brings five points to fixed places, and how well they fit.

Points are x, y in pixels with (0, 0) at the left top corner of the picture, as detectors tell them: the two eyes, the
tip of the nose, the two corners of the mouth, each pair from the left of the picture to the right.
"""

from __future__ import annotations

import math

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from torch import Tensor

from veilkit.lookup import Lookup

Floats = NDArray[np.float64]
# Where ArcFace's crops of 112 x 112 pixels have the five points.
_ARCFACE: Floats = np.array(
    [[38.2946, 51.6963], [73.5318, 51.5014], [56.0252, 71.7366], [41.5493, 92.3655], [70.7299, 92.2041]]
) / 112.0  # fmt: skip
INNER = 0.75
"""Share of a crop's side that ArcFace's own, tighter crop takes in its middle; the rest holds forehead and chin."""
TEMPLATE: Floats = 0.5 + INNER * (_ARCFACE - 0.5)
"""(5, 2): the places of the five points in a crop, as shares of its side."""

# Left, top and side, as shares of a crop's side. dlib's is the mean place of its chips over generated faces.
VIEWS: Lookup[tuple[float, float, float]] = Lookup(
    "view of a crop",
    [
        ("whole", (0.0, 0.0, 1.0)),
        ("arcface", ((1 - INNER) / 2, (1 - INNER) / 2, INNER)),
        ("dlib", (0.145, 0.255, 0.71)),
    ],
)


def similarity(points: Floats, size: int) -> Floats:
    """The rotation, scale and shift (2, 3) that bring `points` (5, 2) closest to the template of a crop of `size`.

    Least squares (Umeyama 1991), without mirroring.
    """
    wanted = TEMPLATE * size
    middle, goal = points.mean(axis=0), wanted.mean(axis=0)
    a, b = points - middle, wanted - goal
    spread = float((a**2).sum())
    if spread < 1e-9:
        return np.array([[math.nan] * 3] * 2)
    # For two dimensions the best rotation and scale is one complex factor.
    real, imaginary = float((a * b).sum()) / spread, float((a[:, 0] * b[:, 1] - a[:, 1] * b[:, 0]).sum()) / spread
    turn = np.array([[real, -imaginary], [imaginary, real]])
    return np.concatenate([turn, (goal - turn @ middle)[:, None]], axis=1)


def misfit(points: Floats, matrix: Floats, size: int) -> float:
    """Root mean square distance of the moved points to the template, as a share of the crop's side."""
    moved = points @ matrix[:, :2].T + matrix[:, 2]
    return float(np.sqrt(((moved / size - TEMPLATE) ** 2).sum(axis=1).mean()))


def inverse(matrix: Floats) -> Floats:
    """The similarity (2, 3) that undoes one."""
    turned = np.linalg.inv(matrix[:, :2])
    return np.concatenate([turned, (-turned @ matrix[:, 2])[:, None]], axis=1)


def warped(image: Tensor, matrix: Floats, size: tuple[int, int]) -> Tensor:
    """image (C, H, W) seen through `matrix` (2, 3), at `size` (height, width); the edges repeat.

    Bilinear; where the picture shrinks by more than half, it is averaged first, so that nothing aliases.
    """
    shrink = math.floor(0.75 / max(float(np.hypot(matrix[0, 0], matrix[1, 0])), 1e-6))
    image, matrix = _seen(image, matrix, size, 2 * max(shrink, 1))
    if shrink > 1 and min(image.shape[1:]) >= 2 * shrink:
        image = F.avg_pool2d(image[None], shrink)[0]
        matrix = np.concatenate([matrix[:, :2] * shrink, matrix[:, 2:]], axis=1)
    back = inverse(matrix)
    rows, columns = torch.meshgrid(
        torch.arange(size[0], dtype=torch.float64) + 0.5,
        torch.arange(size[1], dtype=torch.float64) + 0.5,
        indexing="ij",
    )
    x = back[0, 0] * columns + back[0, 1] * rows + back[0, 2]
    y = back[1, 0] * columns + back[1, 1] * rows + back[1, 2]
    height, width = image.shape[1:]
    grid = torch.stack([2 * x / width - 1, 2 * y / height - 1], 2).float()
    # grid_sample's -1 and 1 are the borders of the picture, as ours are with align_corners=False.
    return F.grid_sample(image[None], grid[None], mode="bilinear", padding_mode="border", align_corners=False)[0]


def _seen(image: Tensor, matrix: Floats, size: tuple[int, int], margin: int) -> tuple[Tensor, Floats]:
    """The part of the picture that `warped` looks at, and the matrix for it; photographs are large."""
    back = inverse(matrix)
    corners = np.array([(0, 0), (size[1], 0), (0, size[0]), (size[1], size[0])], np.float64)
    at = corners @ back[:, :2].T + back[:, 2]
    height, width = image.shape[1:]
    left, top = (np.clip(np.floor(at.min(axis=0)) - margin, 0, [width - 1, height - 1])).astype(int)
    right, bottom = (np.clip(np.ceil(at.max(axis=0)) + margin, [left + 1, top + 1], [width, height])).astype(int)
    moved = matrix[:, 2] + matrix[:, :2] @ np.array([left, top], np.float64)
    return image[:, top:bottom, left:right], np.concatenate([matrix[:, :2], moved[:, None]], axis=1)


def view(crops: Tensor, name: str) -> Tensor:
    """What an expert that is used to other crops is shown of crops (N, 3, S, S); gradients pass."""
    left, top, share = VIEWS[name]
    if share == 1.0:
        return crops
    side = max(1, round(share * crops.shape[2]))
    matrix = crops.new_tensor([[share, 0.0, 2 * left + share - 1], [0.0, share, 2 * top + share - 1]])
    grid = F.affine_grid(
        matrix.expand(len(crops), 2, 3), [len(crops), crops.shape[1], side, side], align_corners=False
    )
    return F.grid_sample(crops, grid, mode="bilinear", padding_mode="border", align_corners=False)
