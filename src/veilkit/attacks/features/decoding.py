"""From features to pictures by a decoder that learned on other people; for features of pictures or released ones."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import cast

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from torch import Tensor, nn

from veilkit.attacks.adversary import Budget
from veilkit.attacks.learned.learning import Learning, digest, learn
from veilkit.errors import ConfigError, DataError
from veilkit.rng import Randomness
from veilkit.training.fitting import Fitted, seeded


@dataclass(frozen=True, slots=True)
class DecoderConfig:
    """features: length of a vector. size: (height, width) of the images. width: channels at full size.

    levels: how often the size doubles; `widest` times `width` channels at most.
    """

    features: int
    size: tuple[int, int]
    width: int = 32
    levels: int = 4
    widest: int = 8

    def __post_init__(self) -> None:
        if min(self.features, *self.size, self.width, self.levels, self.widest) < 1:
            raise ConfigError(f"a decoder's sizes must be positive, but got {self}")


class FeatureDecoder(nn.Module):
    """(N, features) to (N, 3, H, W) in (0, 1): a linear layer to a small map, which convolutions enlarge."""

    def __init__(self, config: DecoderConfig) -> None:
        super().__init__()
        self.config = config
        step = 2**config.levels
        self._start = tuple(-(-side // step) for side in config.size)
        widths = [config.width * min(2**level, config.widest) for level in reversed(range(config.levels + 1))]
        self._first = widths[0]
        self.spread = nn.Linear(config.features, widths[0] * self._start[0] * self._start[1])
        self.blocks = nn.ModuleList(
            nn.Sequential(
                nn.Conv2d(into, out, 3, padding=1, bias=False), nn.BatchNorm2d(out), nn.LeakyReLU(0.1)
            )
            for into, out in pairwise(widths)
        )  # fmt: skip
        self.answer = nn.Conv2d(widths[-1], 3, 3, padding=1)

    def forward(self, features: Tensor) -> Tensor:
        """(N, features) -> (N, 3, H, W)."""
        maps = self.spread(features).view(len(features), self._first, *self._start)
        for block in self.blocks:
            maps = block(F.interpolate(maps, scale_factor=2.0, mode="nearest"))
        height, width = self.config.size
        return cast(Tensor, self.answer(maps))[:, :, :height, :width].sigmoid()


_CHUNK = 64
_TINY = 1e-12


@dataclass(frozen=True, slots=True)
class DecodingConfig:
    """The decoder's size and how it learns; its loss is L1."""

    width: int = 32
    levels: int = 4
    learning: Learning = field(default_factory=Learning)


@dataclass(frozen=True, slots=True, eq=False)
class Decoder:
    """A fitted decoder, with the mean (D,) and spread of the features that it learned from."""

    network: FeatureDecoder
    mean: NDArray[np.float32]
    spread: float
    fitted: Fitted

    @torch.no_grad()
    def decode(self, features: NDArray[np.float32]) -> Tensor:
        """(N, D) -> pictures (N, 3, H, W) in (0, 1)."""
        values = _standard(features, self.mean, self.spread)
        return torch.cat([self.network(part) for part in torch.split(values, _CHUNK)])


def train_decoder(
    features: NDArray[np.float32],
    pictures: Tensor,
    people: NDArray[np.int64],
    budget: Budget,
    config: DecodingConfig,
    *,
    work: Path | None = None,
    name: str = "feature_decoder",
) -> Decoder:
    """Fit a decoder to features (N, D) of public pictures, uint8 (N, 3, H, W), of people (N,).

    The features are whatever the adversary will see of its victims: of protected pictures, of originals, noised.
    """
    if features.ndim != 2 or len(features) != len(pictures) or not len(features):
        raise DataError(f"expected a feature vector per picture, but got {features.shape} for {len(pictures)}")
    mean, spread = features.mean(axis=0), float(features.std(axis=0).mean()) + _TINY
    values = _standard(features, mean, spread)
    shape = DecoderConfig(features.shape[1], (pictures.shape[2], pictures.shape[3]), config.width, config.levels)
    rng = Randomness.from_seed(budget.seed).child(name, "start")
    network = seeded(lambda: FeatureDecoder(shape), rng)

    def loss(at: NDArray[np.int64]) -> Tensor:
        answer: Tensor = network(values[at])
        return (answer - pictures[at].float() / 255).abs().mean()

    facts = {"data": digest(features, pictures), "network": asdict(shape)}
    fitted = learn(network, loss, people, config.learning, budget, name=name, facts=facts, work=work)
    return Decoder(network, mean, spread, fitted)


def _standard(features: NDArray[np.float32], mean: NDArray[np.float32], spread: float) -> Tensor:
    """About zero and of unit spread: one for all dimensions, lest noise in idle ones be blown up."""
    return torch.from_numpy(((features - mean) / spread).astype(np.float32))
