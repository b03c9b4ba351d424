"""What Disguise learns from: aligned crops of labelled people in an order of the seed, and how they are varied."""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from veilkit.errors import DataError
from veilkit.experts.alignment import warp
from veilkit.rng import Randomness
from veilkit.training.pixels import read_labels, read_pixels
from veilkit.types import Split

Positions = NDArray[np.int64]


class DisguiseData:
    """Crops of the training people; every random choice derives from (seed, step).

    identities: (N, dim) of length 1, one for each crop, set once the experts are joined.
    """

    def __init__(self, crops: Split, size: int, batch: int, seed: int) -> None:
        if len(crops.identities) < 2:
            raise DataError(f"expected at least 2 labelled people to learn from, but got {len(crops.identities)}")
        if len(crops) < batch:
            raise DataError(f"expected at least one batch of {batch} faces, but got {len(crops)}")
        self.pixels = read_pixels(crops, (size, size))
        self.identities = torch.empty(0)
        self._batch = batch
        self._rng = Randomness.from_seed(seed).child("disguise", "data")
        self._labels = read_labels(crops).numpy()
        self._order: tuple[int, Positions] = (-1, np.empty(0, dtype=np.int64))

    def __len__(self) -> int:
        return len(self.pixels)

    def positions(self, step: int) -> Positions:
        """The crops of a step: whole batches of a shuffle of its own for each epoch."""
        epoch, at = divmod(step, len(self) // self._batch)
        if self._order[0] != epoch:
            self._order = epoch, self._rng.child("epoch", epoch).permutation(len(self))
        return self._order[1][at * self._batch : (at + 1) * self._batch]

    def crops(self, positions: Positions) -> Tensor:
        """Crops (N, 3, S, S) in [0, 1]."""
        return self.pixels[torch.from_numpy(positions)].float().div_(255)

    def partners(self, positions: Positions, step: int, same: bool) -> Positions:
        """For each crop another one of the same person (itself where there is no other), or one of somebody else."""
        generator = self._rng.child("partners", step).numpy()
        chosen = []
        for position in positions:
            alike = self._labels == self._labels[position]
            if same and alike.sum() > 1:
                alike[position] = False
            chosen.append(int(generator.choice(np.flatnonzero(alike if same else ~alike))))
        return np.array(chosen, dtype=np.int64)


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
