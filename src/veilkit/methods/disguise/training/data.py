"""What Disguise learns from: aligned crops of labelled people and their identities, in an order of the seed."""

from __future__ import annotations

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from veilkit.errors import DataError
from veilkit.rng import Randomness
from veilkit.training.pixels import read_pixels
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
        people = {name: label for label, name in enumerate(crops.identities)}
        self._labels = np.array([people[str(record.identity)] for record in crops.records], dtype=np.int64)
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
