"""A changed crop back into its picture: colours matched, edges feathered, nothing else touched; and hiding a box."""

from __future__ import annotations

import math

import torch
import torch.nn.functional as F
from torch import Tensor

from veilkit.experts.alignment import inverse, moved, warp

Box = tuple[float, float, float, float]
_WIDER = 0.15  # of a hidden box on each side, as detectors' boxes leave out chin and forehead
_MIDDLE, _RADII = (0.5, 0.53), (0.42, 0.45)  # of the ellipse in a crop, x and y, as shares: hairline to chin
_SOLID = 0.8  # share of its radius in which the new face covers the old one fully


def feather(size: int) -> Tensor:
    """(size, size): 1 over the face, falling smoothly to 0 at an ellipse inside of the crop."""
    at = (torch.arange(size, dtype=torch.float32) + 0.5) / size
    x, y = (at - _MIDDLE[0]) / _RADII[0], (at - _MIDDLE[1]) / _RADII[1]
    radius = (x[None, :].square() + y[:, None].square()).sqrt()
    ramp = ((1 - radius) / (1 - _SOLID)).clamp(0, 1)
    return ramp * ramp * (3 - 2 * ramp)


def colour_matched(made: Tensor, wanted: Tensor, mask: Tensor) -> Tensor:
    """`made` (3, S, S) with each channel's mean and spread under `mask` (S, S) as in `wanted`, in [0, 1]."""
    weight = mask / mask.sum()

    def moments(image: Tensor) -> tuple[Tensor, Tensor]:
        mean = (image * weight).sum((1, 2), keepdim=True)
        return mean, ((image - mean).square() * weight).sum((1, 2), keepdim=True).sqrt()

    (mean, spread), (goal, width) = moments(made), moments(wanted)
    return ((made - mean) * (width / spread.clamp(min=1e-3)).clamp(0.5, 2.0) + goal).clamp(0, 1)


def paste(picture: Tensor, made: Tensor, matrix: Tensor, mask: Tensor) -> Tensor:
    """A picture (3, H, W) with the crop `made` (3, S, S) laid over it where `mask` (S, S) is not 0.

    matrix: (2, 3), from the picture to the crop. Where the mask is 0, values stay as they are to the last bit.
    """
    back, side = inverse(matrix), made.shape[1]
    corners = moved(back.new_tensor([(0, 0), (side, 0), (0, side), (side, side)]), back)
    left, top, right, bottom = *corners.amin(0).tolist(), *corners.amax(0).tolist()
    rows, columns = _inside(picture, (left, top, right, bottom))
    height, width = rows.stop - rows.start, columns.stop - columns.start
    if height < 1 or width < 1:
        return picture
    shifted = torch.cat([back[:, :2], back[:, 2:] - back.new_tensor([[columns.start], [rows.start]])], 1)
    laid = warp(torch.cat([made, mask[None]])[None], shifted[None], (height, width), beyond="border")[0]
    alpha, part = laid[3:], picture[:, rows, columns]
    result = picture.clone()
    result[:, rows, columns] = torch.where(alpha > 0, part.lerp(laid[:3], alpha).clamp(0, 1), part)
    return result


def hidden(picture: Tensor, box: Box, how: str) -> Tensor:
    """The picture (3, H, W) itself, a box of it, somewhat widened, now black (`mask`) or 4 x 4 cells (`pixelate`)."""
    left, top, right, bottom = box
    wide, high = _WIDER * (right - left), _WIDER * (bottom - top)
    rows, columns = _inside(picture, (left - wide, top - high, right + wide, bottom + high))
    part = picture[:, rows, columns]
    if part.numel():
        picture[:, rows, columns] = pixelated(part, 4) if how == "pixelate" else 0.0
    return picture


def pixelated(picture: Tensor, cells: int) -> Tensor:
    """(3, H, W) in that many cells along the shorter side, each of its mean colour."""
    height, width = picture.shape[1:]
    cell = max(1, math.ceil(min(height, width) / cells))
    grid = math.ceil(height / cell), math.ceil(width / cell)
    means = F.adaptive_avg_pool2d(picture[None], grid)
    return F.interpolate(means, size=(height, width), mode="nearest")[0]


def _inside(picture: Tensor, box: Box) -> tuple[slice, slice]:
    """Rows and columns of the picture that a box touches."""
    height, width = picture.shape[1:]
    left, top = max(0, math.floor(box[0])), max(0, math.floor(box[1]))
    right, bottom = min(width, math.ceil(box[2])), min(height, math.ceil(box[3]))
    return slice(top, max(top, bottom)), slice(left, max(left, right))
