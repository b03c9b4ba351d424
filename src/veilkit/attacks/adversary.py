"""What an adversary is given: a budget, pairs of other people, the protection to be run again, its decoder."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from veilkit.attacks.pictures import Pictures, SomePictures
from veilkit.errors import ConfigError, DataError

Protector: TypeAlias = Callable[[Tensor, int], Tensor]
"""Protects again: images (N, 3, H, W) in [0, 1] and the number of a draw to protected images of the same shape.

Each draw is under a fresh key; the same draw gives the same answer, whichever pictures share a call.
"""

Undo: TypeAlias = Callable[[Tensor], Tensor]
"""The decoder of a reversible protection: protected images (N, 3, H, W) in [0, 1] to the originals, nearly."""


@dataclass(frozen=True, slots=True)
class Budget:
    """How much an attack that learns may spend. Where none is given, such attacks do not apply.

    updates: steps of training, each on `batch` pictures; an attack that works on each victim by itself may look at
    updates x batch pictures in all. pictures: at most so many train, and at most so many are attacked, in whole
    people. seed: of all first weights and orders.
    """

    updates: int = 2000
    pictures: int = 2000
    batch: int = 16
    seed: int = 0

    def __post_init__(self) -> None:
        if min(self.updates, self.pictures) < 1 or self.batch < 2:
            raise ConfigError(f"a budget needs positive numbers, and batches of at least 2 pictures, but got {self}")


@dataclass(frozen=True, slots=True, eq=False)
class Masks:
    """Where the person stands in each original. values: boolean (N, H, W), of one size, true where the person is.

    source: where they come from: known to whoever drew the pictures, or estimated from the originals.
    """

    values: NDArray[np.bool_]
    source: str

    def __post_init__(self) -> None:
        if self.values.ndim != 3 or self.values.dtype != np.bool_:
            raise DataError(f"masks must be boolean (N, H, W), but are {self.values.dtype} {self.values.shape}")

    def __len__(self) -> int:
        return len(self.values)

    def only(self, indices: NDArray[np.int64]) -> Masks:
        """The masks at these positions."""
        return Masks(self.values[indices], self.source)


@dataclass(frozen=True, slots=True, eq=False)
class Pairs:
    """Pictures of other people before and after the protection. people: (N,) codes, in the target's numbering.

    masks: of the originals, where known. features, clean_features: as in the target, of a release of features.
    """

    originals: Pictures
    protected: Pictures
    people: NDArray[np.int64]
    masks: Masks | None = None
    features: NDArray[np.float32] | None = None
    clean_features: NDArray[np.float32] | None = None

    def __post_init__(self) -> None:
        counts = [len(self.originals), len(self.protected), len(self.people)]
        counts += [len(each) for each in (self.masks, self.features, self.clean_features) if each is not None]
        if len(set(counts)) != 1:
            raise DataError(
                f"expected as many originals as protected pictures, codes, masks and features, but got {counts}"
            )

    def __len__(self) -> int:
        return len(self.people)

    def only(self, indices: NDArray[np.int64]) -> Pairs:
        """The pairs at these positions."""
        originals, protected = (SomePictures(each, indices) for each in (self.originals, self.protected))
        masks = None if self.masks is None else self.masks.only(indices)
        shown, clean = (None if each is None else each[indices] for each in (self.features, self.clean_features))
        return Pairs(originals, protected, self.people[indices], masks, shown, clean)
