"""PK batches: P identities with K images each, so that every image finds a match and strangers in its batch."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from veilkit.errors import ConfigError, DataError
from veilkit.rng import Randomness


@dataclass(frozen=True, slots=True)
class PKSampler:
    """Batches of `identities` x `images`, a pure function of labels, randomness and epoch.

    An epoch shows each image about once: an identity's images are shuffled and dealt in groups of `images` (the last
    group is filled up with others of the same identity, repeated where it has fewer), and groups are shuffled.
    What does not fill a last batch of distinct identities is left for the next epoch's shuffle.
    """

    labels: tuple[int, ...]
    identities: int = 16
    images: int = 4

    def __post_init__(self) -> None:
        if self.identities < 2 or self.images < 2:
            raise ConfigError(
                "a batch needs at least 2 identities with 2 images each, "
                f"but got {self.identities} with {self.images}"
            )
        distinct = len(set(self.labels))
        if distinct < self.identities:
            raise DataError(
                f"expected at least {self.identities} identities for one batch, but got {distinct}; "
                "lower the identities per batch or bring more people"
            )

    def epoch(self, rng: Randomness, epoch: int) -> list[NDArray[np.int64]]:
        """The batches of one epoch, each the positions of P x K images, those of one identity next to each other."""
        generator = rng.child("sampler", epoch).numpy()
        waiting = self._groups(generator)
        batches: list[NDArray[np.int64]] = []
        while True:
            chosen: dict[int, NDArray[np.int64]] = {}
            rest = []
            for label, group in waiting:
                if len(chosen) < self.identities and label not in chosen:
                    chosen[label] = group
                else:
                    rest.append((label, group))
            if len(chosen) < self.identities:
                return batches
            batches.append(np.concatenate(list(chosen.values())))
            waiting = rest

    def _groups(self, generator: np.random.Generator) -> list[tuple[int, NDArray[np.int64]]]:
        groups = []
        for label, positions in sorted(_positions(self.labels).items()):
            shuffled = generator.permutation(positions)
            for start in range(0, len(shuffled), self.images):
                group = shuffled[start : start + self.images]
                lacking = self.images - len(group)
                if lacking:
                    others = np.setdiff1d(positions, group)
                    pool = others if len(others) >= lacking else positions
                    filler = generator.choice(pool, lacking, replace=len(pool) < lacking)
                    group = np.concatenate([group, filler])
                groups.append((label, group))
        return [groups[i] for i in generator.permutation(len(groups))]


def _positions(labels: Sequence[int]) -> dict[int, NDArray[np.int64]]:
    found: dict[int, list[int]] = defaultdict(list)
    for position, label in enumerate(labels):
        found[label].append(position)
    return {label: np.array(positions, dtype=np.int64) for label, positions in found.items()}
