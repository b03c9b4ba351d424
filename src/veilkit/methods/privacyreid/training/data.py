"""What an anonymiser learns from: augmented batches of labelled people, and how their pictures are desensitised."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from veilkit.datasets.augment import augment
from veilkit.datasets.sampler import PKSampler
from veilkit.methods.privacyreid.training.config import AnonymiserConfig
from veilkit.rng import Randomness
from veilkit.training.pixels import read_labels, read_pixels, split_digest
from veilkit.types import Split


@dataclass(frozen=True, slots=True)
class Desensitiser:
    """A conventional protection, as the first supervision. name: tells two of them apart, with their strength.

    apply: images (N, 3, H, W) in [0, 1] and a name for each, from which its random values derive, to the same shape.
    """

    name: str
    apply: Callable[[Tensor, Sequence[str]], Tensor]


class AnonymiserData:
    """The training people at the working size; every random choice derives from (seed, epoch, step)."""

    def __init__(self, train: Split, config: AnonymiserConfig, desensitiser: Desensitiser) -> None:
        self.people = len(train.identities)
        self.desensitiser = desensitiser
        self._augment = config.reid.augment
        self._rng = Randomness.from_seed(config.reid.seed).child("anonymiser")
        self._pixels = read_pixels(train, config.size)
        self._labels = read_labels(train)
        self._sampler = PKSampler(tuple(self._labels.tolist()), config.reid.identities, config.reid.images)

    def batches(self, epoch: int) -> list[NDArray[np.int64]]:
        """The batches of `epoch`, as positions in the split."""
        return self._sampler.epoch(self._rng, epoch)

    def varied(self, positions: NDArray[np.int64], epoch: int, step: int) -> tuple[Tensor, Tensor]:
        """Augmented pictures (N, 3, H, W) in [0, 1] and their labels (N,)."""
        rng = self._rng.child("augment", epoch, step)
        return augment(self._pixels[positions], self._augment, rng), self._labels[positions]

    def desensitised(self, images: Tensor, epoch: int, step: int) -> Tensor:
        """What the supervision makes of a batch that `varied` gave; noise is drawn anew for each."""
        return self.desensitiser.apply(images, [f"{epoch}/{step}/{place}" for place in range(len(images))])


def run_facts(
    train: Split, config: AnonymiserConfig, desensitiser: Desensitiser, started_from: str | None
) -> dict[str, Any]:
    """What makes two runs the same one, as JSON values: recipe, pictures, supervision and first weights."""
    facts = {
        **asdict(config),
        "data": split_digest(train),
        "desensitiser": desensitiser.name,
        "init": started_from,
    }
    whole: dict[str, Any] = json.loads(json.dumps(facts))
    return whole
