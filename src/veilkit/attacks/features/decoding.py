"""From features to pictures by a decoder that learned on other people; for features of pictures or released ones."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from veilkit.attacks.adversary import Budget
from veilkit.attacks.features.decoder_network import DecoderConfig, FeatureDecoder
from veilkit.attacks.learned.learning import Learning, digest, learn
from veilkit.errors import DataError
from veilkit.rng import Randomness
from veilkit.training.fitting import Fitted, seeded

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
