"""Crops moved a little before experts see them, so that a swapper pleases others than the very ones that teach it."""

from __future__ import annotations

import torch
from torch import Tensor

from veilkit.experts.alignment import warp
from veilkit.rng import Randomness

_LIGHT, _GRAIN = 3.0, 0.5  # change of light and grain of the picture, for each share that it is moved


def jittered(crops: Tensor, most: float, rng: Randomness) -> Tensor:
    """(N, 3, S, S) in [0, 1], each mirrored or not, moved, turned, scaled and lit at random, with some grain.

    most: of the side, by which a crop is moved; turn (in radians) and scale change by as much, light by three times
    and grain has half of it. A texture that only one network takes for a face does not survive this, and a face does.
    Gradients pass.
    """
    if not most:
        return crops
    count, side = len(crops), crops.shape[-1]
    draws = 2 * rng.child("place").uniform(6, count).to(crops.device) - 1
    angle, scale = most * draws[0], 1 + most * draws[1]
    mirrored = torch.where(draws[2] < 0, -1.0, 1.0)
    turn = scale[:, None, None] * torch.stack(
        [
            torch.stack([mirrored * angle.cos(), -angle.sin()], -1),
            torch.stack([mirrored * angle.sin(), angle.cos()], -1),
        ],
        -2,
    )
    middle = crops.new_full((2, 1), side / 2)
    shift = middle - turn @ middle + most * side * draws[3:5].T[..., None]
    moved = warp(crops, torch.cat([turn, shift], -1), (side, side), beyond="border")
    grain = _GRAIN * most * rng.child("grain").normal(*crops.shape).to(crops.device)
    return (moved * (1 + _LIGHT * most * draws[5].view(-1, 1, 1, 1)) + grain).clamp(0, 1)
