"""PixelFade's Algorithm 1 for one picture: constraint operations and partial replacements, in turn.

The iteration is the paper's; `PixelFadeConfig` has the points on which the released code and the ablations differ.
What is added in all cases: the last steps go through the 8-bit quantiser, and the best such picture is kept.
"""

from __future__ import annotations

import math
from collections.abc import Generator

import torch
from torch import Tensor

from veilkit.methods.expert_guided.feature_loss import Answer, Query
from veilkit.methods.expert_guided.scheduler import Optimisation, Optimised, quantised
from veilkit.methods.pixelfade.config import PixelFadeConfig
from veilkit.methods.pixelfade.noise import Space, mask_numbers, objective
from veilkit.rng import Randomness
from veilkit.types import PictureReport


def fade(picture: Tensor, *, limit: float, space: Space, config: PixelFadeConfig, rng: Randomness) -> Optimisation:
    """Optimise `picture` (3, H, W) in [0, 1] into noise whose features lie within `limit` (squared distance).

    rng: of this picture alone.
    """
    first = yield Query(picture, None)  # x_0 is the original: its distance is 0, and so is its gradient
    original = space.inside(picture)
    values, velocity = original, torch.zeros_like(original)
    numbers = mask_numbers(original.shape, config, rng)
    answer, turn = first, 0
    for step in range(config.steps):
        if step:
            answer = yield Query(space.outside(values), first.features)
        met = answer.distance < limit
        starting, ending = step < config.startup, step >= config.steps - config.rest
        if starting or config.every_step or not met or config.optimisation == "l1":
            gradient = space.gradient(answer.gradient)
            if config.optimisation == "l1":
                away = values - objective(original, 0, space, config, rng)
                gradient = gradient + config.l1_weight / away.numel() * away.sign()
            velocity = config.decay * velocity + normalised(gradient, config)
            values = values - _length(met, config) * velocity
        if config.optimisation != "l1" and (starting or met) and not ending:
            if config.optimisation == "replace":
                target = objective(original, turn, space, config, rng)
                values = torch.where(numbers == turn % config.masks, target, values)
            else:
                values = values + config.amplitude * rng.child("perturb", turn).normal(*values.shape)
            turn += 1
        values = space.valid(values)
    best, distance, steps = yield from _settle(values, velocity, first, limit, space, config)
    return Optimised(
        best,
        PictureReport(
            within_limit=distance < limit,
            details={
                "feature_distance": distance,
                "limit": limit,
                "steps": config.steps + steps,
                "replacements": turn,
            },
        ),
    )


def normalised(gradient: Tensor, config: PixelFadeConfig) -> Tensor:
    """The gradient over its squared L2 norm (Eq. 3), or over its mean magnitude; 0/0 counts as 0 (Eq. 4 at t = 0)."""
    size = gradient.square().sum() if config.normalise == "squared_l2" else gradient.abs().mean()
    return gradient / size if size > 0 else torch.zeros_like(gradient)


def _length(met: bool, config: PixelFadeConfig) -> float:
    return config.step if met or config.unmet_step is None else config.unmet_step


def _settle(
    values: Tensor, velocity: Tensor, first: Answer, limit: float, space: Space, config: PixelFadeConfig
) -> Generator[Query, Answer, tuple[Tensor, float, int]]:
    """Constraint operations through the quantiser until it holds; the best picture, its distance, their number."""
    best, least, steps = quantised(space.outside(values)), math.inf, 0
    while True:
        shown = quantised(space.outside(values))
        answer = yield Query(shown, first.features)
        if answer.distance < least:
            best, least = shown, answer.distance
        if least < limit or steps == config.finish:
            return best, least, steps
        velocity = config.decay * velocity + normalised(space.gradient(answer.gradient), config)
        values = space.valid(values - _length(False, config) * velocity)
        steps += 1
