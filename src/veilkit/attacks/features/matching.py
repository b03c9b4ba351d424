"""From features to pictures by optimisation: a picture is changed until the expert sees the wanted features in it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from veilkit.errors import ConfigError
from veilkit.progress import Progress

Embed = Callable[[Tensor], Tensor]
_TINY = 1e-12


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
    embed: Embed,
    features: NDArray[np.float32],
    start: Tensor,
    config: MatchingConfig,
    *,
    batch: int = 16,
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
