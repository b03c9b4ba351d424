"""From features to pictures: by a decoder that learned on other people, or by optimisation."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any, cast

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from torch import Tensor, nn

from veilkit.attacks.learned.learning import Learning, Scale, digest, learn
from veilkit.attacks.pictures import Features
from veilkit.attacks.target import Budget
from veilkit.errors import ConfigError, DataError
from veilkit.progress import Progress
from veilkit.rng import Randomness
from veilkit.training.fitting import Fitted, seeded

Embed = Callable[[Tensor], Tensor]
_CHUNK = 64
_TINY = 1e-12


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


@dataclass(frozen=True, slots=True)
class DecodingConfig:
    """The decoder's size and how it learns; its loss is L1.

    edges, identity: weights of two more terms of the loss: L1 of differences of neighbouring values, and one minus
    the cosine of the features that the expert sees in the answer to those that it was made from.
    """

    width: int = 32
    levels: int = 4
    learning: Learning = field(default_factory=Learning)
    edges: float = 0.0
    identity: float = 0.0


@dataclass(frozen=True, slots=True, eq=False)
class Decoder:
    """A fitted decoder, with the scale of the features that it learned from."""

    network: FeatureDecoder
    scale: Scale
    fitted: Fitted

    @torch.no_grad()
    def decode(self, features: Features) -> Tensor:
        """(N, D) -> pictures (N, 3, H, W) in (0, 1)."""
        parts = torch.split(self.scale.standardised(features), _CHUNK)
        return torch.cat([self.network(part) for part in parts])


def train_decoder(
    features: Features,
    pictures: Tensor,
    people: NDArray[np.int64],
    budget: Budget,
    config: DecodingConfig,
    *,
    work: Path | None = None,
    name: str = "feature_decoder",
    embed: Embed | None = None,
) -> Decoder:
    """Fit a decoder to features (N, D) of public pictures, uint8 (N, 3, H, W), of people (N,).

    The features are whatever the adversary will see of its victims: of protected pictures, of originals, noised.
    embed: the expert, through which gradients pass; without it there is no term of identity.
    """
    if features.ndim != 2 or len(features) != len(pictures) or not len(features):
        raise DataError(f"expected a feature vector per picture, but got {features.shape} for {len(pictures)}")
    scale = Scale(features.mean(axis=0), float(features.std(axis=0).mean()) + _TINY)
    values = scale.standardised(features)
    shape = DecoderConfig(features.shape[1], (pictures.shape[2], pictures.shape[3]), config.width, config.levels)
    rng = Randomness.from_seed(budget.seed).child(name, "start")
    network = seeded(lambda: FeatureDecoder(shape), rng)

    def loss(at: NDArray[np.int64]) -> Tensor:
        answer: Tensor = network(values[at])
        difference = answer - pictures[at].float() / 255
        total = difference.abs().mean()
        if config.edges:
            total = total + config.edges * total_variation(difference).mean()
        if config.identity and embed is not None:
            agree = F.cosine_similarity(scale.centred(embed(answer)), values[at], dim=1)
            total = total + config.identity * (1 - agree).mean()
        return total

    facts: dict[str, Any] = {"data": digest(features, pictures), "network": asdict(shape)}
    if config.edges or config.identity:
        facts["terms"] = [config.edges, config.identity if embed is not None else 0.0]
    fitted = learn(network, loss, people, config.learning, budget, name=name, facts=facts, work=work)
    return Decoder(network, scale, fitted)


@dataclass(frozen=True, slots=True)
class MatchingConfig:
    """steps of Adam at `rate` (of the range of values) on each picture; smoothness: weight of the total variation.

    The features' squared distance counts 1 at the start; the total variation is the mean absolute difference of
    neighbouring values.
    """

    steps: int = 200
    rate: float = 0.02
    smoothness: float = 1.0

    def __post_init__(self) -> None:
        if self.steps < 1 or self.rate <= 0 or self.smoothness < 0:
            raise ConfigError(f"steps and rate must be positive and smoothness not negative, but got {self}")


def match_features(
    embed: Embed, features: Features, start: Tensor, config: MatchingConfig, *, batch: int = 16
) -> Tensor:
    """Pictures (N, 3, H, W) in [0, 1] whose features under `embed` come near to the given ones, (N, D).

    embed: differentiable, (N, 3, H, W) -> (N, D). start: (3, H, W), such as the mean image of public pictures. Each
    picture is changed by itself: its loss does not depend on its batch.
    """
    wanted = torch.from_numpy(np.ascontiguousarray(features, dtype=np.float32))
    with Progress(len(wanted) * config.steps, "matching features") as progress:
        found = [_match(embed, goal, start, config, progress) for goal in torch.split(wanted, batch)]
    return torch.cat(found)


def total_variation(images: Tensor) -> Tensor:
    """(N,): mean absolute difference of values one below the other, plus that of values side by side."""
    down = (images[:, :, 1:] - images[:, :, :-1]).abs().flatten(1)
    right = (images[:, :, :, 1:] - images[:, :, :, :-1]).abs().flatten(1)
    return sum((part.mean(1) for part in (down, right) if part.shape[1]), images.new_zeros(len(images)))


def _match(embed: Embed, goal: Tensor, start: Tensor, config: MatchingConfig, progress: Progress) -> Tensor:
    images = start.expand(len(goal), -1, -1, -1).clone().requires_grad_(True)
    with torch.no_grad():
        scale = (embed(images) - goal).square().sum(1).clamp_min(_TINY)
    adam = torch.optim.Adam([images], lr=config.rate)
    for _ in range(config.steps):
        distance = (embed(images) - goal).square().sum(1) / scale
        loss = (distance + config.smoothness * total_variation(images)).sum()
        adam.zero_grad(set_to_none=True)
        loss.backward()  # type: ignore[no-untyped-call]
        adam.step()
        with torch.no_grad():
            images.clamp_(0, 1)
        progress.advance(len(goal), f"distance {float(distance.detach().mean()):.3f} of the start's")
    return images.detach()
