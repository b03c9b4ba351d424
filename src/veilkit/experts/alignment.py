"""Faces put upright: similarity transforms from points to a template, and pictures warped by them. Differentiable.

Pixels are x, y from the left top corner of a picture: the middle of the first pixel is (0.5, 0.5). Five points are
the two eyes, the tip of the nose, the two corners of the mouth, each pair from the left of the picture to the right.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Literal

import torch
import torch.nn.functional as F
from torch import Tensor

from veilkit.errors import DataError
from veilkit.lookup import Lookup

_LEFT_EYE, _RIGHT_EYE = (36, 37, 38, 39, 40, 41), (42, 43, 44, 45, 46, 47)
_CHIP, _BORDER = 150, 0.25
Beyond = Literal["zeros", "border"]


@dataclass(frozen=True, slots=True)
class Template:
    """Where some points of a face belong in a picture of side x side pixels.

    points: x, y of each. of_68, of_5: which of 68 landmarks (iBUG) or of five points each is the mean of.
    backwards: whether the squares are least in the picture, as dlib has it, and not in the template.
    """

    side: int
    points: tuple[tuple[float, float], ...]
    of_68: tuple[tuple[int, ...], ...]
    of_5: tuple[tuple[int, ...], ...]
    backwards: bool = False

    def chosen(self, landmarks: Tensor) -> Tensor:
        """(N, 68, 2) or (N, 5, 2) -> (N, P, 2), the points that this template places."""
        groups = {68: self.of_68, 5: self.of_5}.get(landmarks.shape[1] if landmarks.ndim == 3 else 0)
        if groups is None or landmarks.shape[2] != 2:
            raise DataError(f"expected points of shape (N, 68, 2) or (N, 5, 2), but got {tuple(landmarks.shape)}")
        return torch.stack([landmarks[:, list(group)].mean(1) for group in groups], 1)

    def matrix(self, landmarks: Tensor, side: int | None = None) -> Tensor:
        """(N, 68, 2) or (N, 5, 2) -> (N, 2, 3), from the picture to the template, or to it scaled to `side`."""
        places = landmarks.new_tensor(self.points) * ((side or self.side) / self.side)
        points = self.chosen(landmarks)
        if self.backwards:
            return inverse(similarity(places.expand_as(points), points))
        return similarity(points, places)

    def misfit(self, landmarks: Tensor, side: int | None = None) -> Tensor:
        """(N,): how far the aligned points lie from their places, root mean square, as a share of the side."""
        side = side or self.side
        shares = moved(self.chosen(landmarks), self.matrix(landmarks, side)) / side
        return (shares - landmarks.new_tensor(self.points) / self.side).square().sum(-1).mean(-1).sqrt()

    def align(self, images: Tensor, landmarks: Tensor, side: int | None = None) -> Tensor:
        """(N, C, H, W) and their landmarks -> (N, C, side, side), upright; beyond the picture is black."""
        side = side or self.side
        return warp(images, self.matrix(landmarks, side), (side, side))


def _padded(x: float, y: float) -> tuple[float, float]:
    """A place of dlib's mean face, in [0, 1] without the border of a quarter that a chip has around it."""
    return (_BORDER + x) / (1 + 2 * _BORDER) * _CHIP, (_BORDER + y) / (1 + 2 * _BORDER) * _CHIP


ARCFACE = Template(
    112,
    # As ArcFace gives them (Deng et al. 2019), there counted from the middle of the first pixel.
    tuple(
        (x + 0.5, y + 0.5)
        for x, y in (
            (38.2946, 51.6963),
            (73.5318, 51.5014),
            (56.0252, 71.7366),
            (41.5493, 92.3655),
            (70.7299, 92.2041),
        )
    ),
    (_LEFT_EYE, _RIGHT_EYE, (30,), (48,), (54,)),
    ((0,), (1,), (2,), (3,), (4,)),
)
"""112x112 by eyes, tip of the nose and corners of the mouth: what MobileFaceNet and the like were trained on."""

# Corners of the right eye (in the picture), of the left eye, and the base of the nose.
_CORNERS = ((0.85957, 0.2135), (0.64606, 0.22897), (0.12058, 0.21373), (0.33409, 0.22906), (0.49011, 0.6278))

CHIP = Template(
    _CHIP,
    tuple(_padded(*corner) for corner in _CORNERS),
    ((45,), (42,), (36,), (39,), (33,)),
    ((0,), (1,), (2,), (3,), (4,)),
    backwards=True,
)
"""150x150 as dlib's `get_face_chip` cuts faces for its identity network; its five points are dlib's own."""

CHIP_BY_EYES = Template(
    _CHIP,
    tuple(_padded((a[0] + b[0]) / 2, (a[1] + b[1]) / 2) for a, b in ((_CORNERS[2], _CORNERS[3]), _CORNERS[:2])),
    (_LEFT_EYE, _RIGHT_EYE),
    ((0,), (1,)),
)
"""The same chip by the middles of the eyes alone, for detectors that give eyes, nose and corners of the mouth."""

INNER = 0.75
"""Share of a wide crop's side that ArcFace's own crop takes in its middle; the rest holds forehead and chin."""

# Left, top and side, as shares of a wide crop's side. dlib's is the mean place of its chips over generated faces.
VIEWS: Lookup[tuple[float, float, float]] = Lookup(
    "view of a crop",
    [
        ("whole", (0.0, 0.0, 1.0)),
        ("arcface", ((1 - INNER) / 2, (1 - INNER) / 2, INNER)),
        ("dlib", (0.145, 0.255, 0.71)),
    ],
)


def _widened(template: Template, name: str) -> Template:
    """The template of a crop of the same side, of which the view `name` is what this one cuts."""
    left, top, share = VIEWS[name]
    points = tuple((left * template.side + share * x, top * template.side + share * y) for x, y in template.points)
    return replace(template, points=points)


WIDE: Lookup[Template] = Lookup(
    "order of points",
    [
        ("five", _widened(ARCFACE, "arcface")),
        ("dlib-5", _widened(CHIP, "dlib")),
        ("68", _widened(ARCFACE, "arcface")),
    ],
)
"""Crops that hold the whole face, from hairline to chin, by the order of a detector's points."""


def similarity(points: Tensor, places: Tensor) -> Tensor:
    """The turn, scale and shift that take points (N, P, 2) nearest to places (P, 2) or (N, P, 2), as (N, 2, 3).

    Least squares in closed form: with points p and places q as complex numbers from their means,
    a = sum(conj(p) q) / sum(|p|^2)  is turn and scale. P must be at least 2, and the points must not coincide.
    """
    p_mean, q_mean = points.mean(-2, keepdim=True), places.mean(-2, keepdim=True)
    p, q = points - p_mean, places - q_mean
    size = (p**2).sum((-2, -1))
    real = (p * q).sum((-2, -1)) / size
    imaginary = (p[..., 0] * q[..., 1] - p[..., 1] * q[..., 0]).sum(-1) / size
    turn = torch.stack([torch.stack([real, -imaginary], -1), torch.stack([imaginary, real], -1)], -2)
    shift = q_mean.squeeze(-2) - (turn @ p_mean.transpose(-1, -2)).squeeze(-1)
    return torch.cat([turn, shift[..., None]], -1)


def inverse(matrix: Tensor) -> Tensor:
    """(N, 2, 3) -> (N, 2, 3), the way back; not finite where there is none."""
    (a, b), (c, d) = (row.unbind(-1) for row in matrix[..., :2].unbind(-2))
    back = torch.stack([d, -b, -c, a], -1).view(matrix[..., :2].shape) / (a * d - b * c)[..., None, None]
    return torch.cat([back, -back @ matrix[..., 2:]], -1)


def moved(points: Tensor, matrix: Tensor) -> Tensor:
    """(N, P, 2) by (N, 2, 3) -> (N, P, 2)."""
    return points @ matrix[..., :2].transpose(-1, -2) + matrix[..., 2][..., None, :]


def warp(images: Tensor, matrix: Tensor, size: tuple[int, int], *, beyond: Beyond = "zeros") -> Tensor:
    """(N, C, H, W) by (N, 2, 3), from picture to result -> (N, C, *size), bilinear.

    beyond: what lies beyond the picture, 0 or its border, repeated.

    A picture that shrinks by k (rounded) is sampled k x k times per pixel and averaged. Each image is worked on by
    its own matrix alone.
    """
    with torch.no_grad():
        shrinks = torch.linalg.det(matrix[:, :, :2]).abs().clamp_min(1e-12).rsqrt()
        finer = [max(1, round(shrink)) if math.isfinite(shrink) else 1 for shrink in shrinks.tolist()]
    back = inverse(matrix)
    out: list[Tensor | None] = [None] * len(images)
    for k in sorted(set(finer)):
        chosen = [place for place, each in enumerate(finer) if each == k]
        grid = _grid(back[chosen], size, k, images.shape).to(images.dtype)
        sampled = F.grid_sample(images[chosen], grid, mode="bilinear", padding_mode=beyond, align_corners=False)
        for place, image in zip(chosen, F.avg_pool2d(sampled, k) if k > 1 else sampled, strict=True):
            out[place] = image
    found = [image for image in out if image is not None]
    return torch.stack(found) if found else images.new_zeros(0, images.shape[1], *size)


def view(crops: Tensor, name: str) -> Tensor:
    """What an expert that is used to other crops is shown of wide ones (N, 3, S, S); gradients pass."""
    left, top, share = VIEWS[name]
    if share == 1.0:
        return crops
    across = share * crops.shape[2]
    side = max(1, round(across))
    scale = side / across
    shift = -torch.tensor([left, top]) * crops.shape[2] * scale
    matrix = torch.cat([scale * torch.eye(2), shift[:, None]], 1).to(crops.device)
    return warp(crops, matrix.expand(len(crops), 2, 3), (side, side), beyond="border")


def _grid(back: Tensor, size: tuple[int, int], k: int, shape: torch.Size) -> Tensor:
    """Where each of (k x k) samples per pixel comes from, (N, k height, k width, 2) in [-1, 1]."""
    height, width = size
    y = (torch.arange(height * k, device=back.device, dtype=back.dtype) + 0.5) / k
    x = (torch.arange(width * k, device=back.device, dtype=back.dtype) + 0.5) / k
    places = torch.stack(torch.meshgrid(x, y, indexing="xy"), -1).flatten(0, 1)
    taken = moved(places.expand(len(back), -1, -1), back) / back.new_tensor([shape[3], shape[2]]) * 2 - 1
    return taken.view(len(back), height * k, width * k, 2)
