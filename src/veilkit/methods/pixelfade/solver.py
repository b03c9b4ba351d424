"""Our way to solve PixelFade's Eq. 1 for one picture: begin with the noise, and leave it only as far as needed.

The paper begins with the original and hopes that every pixel gets replaced. Here every pixel is noise from the start,
and the original enters through its features alone: the picture is a function of (features, noise). So nothing can be
read from it that could not be read from the features that the expert keeps anyhow, whatever network tries to, and
there is no outline of a body to be left over. Of the picture's distance to its noise Eq. 1 asks that it be small: the
first picture within the limit is taken. Adam moves all values by about the same length, and none farther than
`reach`. Even so the picture would become rougher where the expert looks, which is where people stand: after each step
a part of that is taken back, so that local energy lies over the picture as it lay over the noise. Every picture is
judged as its 8-bit file will be.
"""

from __future__ import annotations

import math

import torch
import torch.nn.functional as F
from torch import Tensor

from veilkit.methods.expert_guided.feature_loss import Query
from veilkit.methods.expert_guided.scheduler import Optimisation, Optimised, quantised
from veilkit.methods.pixelfade.config import PixelFadeConfig
from veilkit.methods.pixelfade.noise import Space, grained_noise
from veilkit.rng import Randomness
from veilkit.types import PictureReport

_BETAS = (0.9, 0.99)
_GREY = 0.5
_LAST = 0.1  # of the rate, in the last step
_EVEN = 0.15  # share of the unevenness that each step takes back: the least after which none was measured
_AROUND = 9  # pixels a side over which energy is local
_AT_ONCE = 1.25  # times that a value's distance from grey may change in one step


def solve(
    picture: Tensor,
    *,
    limit: float,
    space: Space,
    size: tuple[int, int] | None,
    config: PixelFadeConfig,
    rng: Randomness,
) -> Optimisation:
    """Noise whose features lie within `limit` (squared distance) of those of `picture` (3, H, W) in [0, 1].

    size: of the expert's input. rng: of this picture alone.
    """
    features = (yield Query(picture, None)).features
    noise = space.outside(grained_noise(picture.shape, size, rng))
    low, high = (noise - config.reach).clamp_(min=0), (noise + config.reach).clamp_(max=1)
    energy = local_energy(noise)
    values, mean, square = noise, torch.zeros_like(noise), torch.zeros_like(noise)
    best, least = noise, math.inf
    total = config.steps + config.finish
    for step in range(total + 1):
        shown = quantised(values)
        answer = yield Query(shown, features)
        if answer.distance < least:
            best, least = shown, answer.distance
        if least < limit or step == total:
            break
        mean = torch.lerp(answer.gradient, mean, _BETAS[0])
        square = torch.lerp(answer.gradient.square(), square, _BETAS[1])
        moved = (mean / (1 - _BETAS[0] ** (step + 1))) / (square / (1 - _BETAS[1] ** (step + 1))).sqrt().add_(1e-20)
        values = evened(values - _rate(step, config) * moved, energy, _EVEN)
        values = torch.minimum(torch.maximum(values, low), high)
    moved = best - noise
    return Optimised(
        best,
        PictureReport(
            within_limit=least < limit,
            details={
                "feature_distance": least,
                "limit": limit,
                "steps": step,
                "replacements": 1,
                "moved": moved.square().mean().sqrt().item(),
            },
        ),
    )


def local_energy(values: Tensor) -> Tensor:
    """(1, H, W): the mean squared distance from middle grey of (3, H, W) over the 9 x 9 pixels around each."""
    strays = (values - _GREY).square().mean(0, keepdim=True)
    return F.avg_pool2d(strays, _AROUND, 1, _AROUND // 2, count_include_pad=False)


def evened(values: Tensor, energy: Tensor, share: float) -> Tensor:
    """Values (3, H, W) whose local energy is nearer to a multiple of `energy` (1, H, W), by `share`."""
    now = local_energy(values)
    wanted = energy * (now.mean() / energy.mean())
    factor = (wanted / now).pow(share / 2).clamp(1 / _AT_ONCE, _AT_ONCE)
    return (values - _GREY) * factor + _GREY


def _rate(step: int, config: PixelFadeConfig) -> float:
    """From `rate` to a tenth of it along a cosine; further steps stay there."""
    along = min(1.0, step / config.steps)
    return config.rate * (_LAST + (1 - _LAST) * 0.5 * (1 + math.cos(math.pi * along)))
