"""AVIH: noise that keeps an expert's features and that a key model turns into the picture (docs/methods/avih.md)."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Literal

import torch
import torch.nn.functional as F
from torch import Tensor

from veilkit.configs import check_ranges
from veilkit.errors import ConfigError
from veilkit.methods.expert_guided.feature_loss import Query
from veilkit.methods.expert_guided.method import ExpertBound, ExpertSettings
from veilkit.methods.expert_guided.scheduler import Optimisation, Optimised, quantised
from veilkit.rng import Randomness
from veilkit.types import PictureReport

_SHAPES = ((16, 3), (16, 16), (3, 16))  # output and input channels of its 3x3 convolutions


class KeyModel:
    """Three convolutions, leaky between them and a sigmoid at the end; every weight comes from the key."""

    def __init__(self, rng: Randomness) -> None:
        self._weights = [
            rng.child("weights", layer).normal(out, into, 3, 3) * (2 / (9 * into)) ** 0.5
            for layer, (out, into) in enumerate(_SHAPES)
        ]

    def __call__(self, pictures: Tensor) -> Tensor:
        """(N, 3, H, W) in [0, 1] -> (N, 3, H, W) in (0, 1); differentiable."""
        maps = pictures * 2 - 1
        for weight in self._weights[:-1]:
            maps = F.leaky_relu(F.conv2d(maps, weight, padding=1), 0.2)
        return torch.sigmoid(F.conv2d(maps, self._weights[-1], padding=1))


_SIDE = 4  # pixels a side of the squares whose sums the variance term compares


@dataclass(frozen=True, slots=True)
class AvihConfig(ExpertSettings):
    """Settings of AVIH, beside those of the expert (expert, batch, spread).

    loss = feature_weight * features + key_weight * MSE(key model(protected), original) + variance_weight * variance
    of the sums over all squares of 4 x 4 pixels of the protected picture, per channel and added up.
    features: the squared distance over the dimensions ("mean", as released) or over the spread ("relative").
    key: whether there is a key model at all.
    balance: "sum" descends the loss as it stands, in which the scale of an expert's features decides whether the
    other two terms are heard; "each" divides the gradient of the features, and that of the other two together, by its
    mean magnitude, and gives the latter the weight `share`, whatever the expert.
    start: from "noise" or from the "original". steps: 100 in PixelFade's comparison, 800 as released. momentum, step:
    of the gradient over its mean magnitude. The step shrinks by `decay` whenever the loss has risen `patience` times.
    """

    steps: int = 100
    step: float = 0.01
    decay: float = 0.85
    patience: int = 16
    momentum: float = 0.3
    features: Literal["mean", "relative"] = "mean"
    balance: Literal["each", "sum"] = "each"
    share: float = 0.2
    feature_weight: float = 1.0
    key: bool = True
    key_weight: float = 0.2
    variance_weight: float = 0.001
    start: Literal["noise", "original"] = "noise"

    def __post_init__(self) -> None:
        ExpertSettings.__post_init__(self)
        check_ranges(self, {
            "steps patience": (1, 100_000), "step": (1e-6, 10), "decay": (0.01, 1), "momentum": (0, 0.9999),
            "share feature_weight key_weight variance_weight": (0, 1e9),
        })  # fmt: skip


class Avih(ExpertBound[AvihConfig]):
    """Adversarial visual information hiding (Su et al., ICCV 2023), PixelFade's closest rival.

    The key model is a small network whose weights come from the secret key; who has the key gets an approximation of
    the original back (`recover`). `released` is the plain sum of the three terms, and `keyless` has no key model.
    """

    name = "avih"
    summary = "noise that keeps one authorised expert's features, and that a secret key model turns into the picture"
    default = AvihConfig()
    presets = {  # noqa: RUF012
        "released": replace(default, balance="sum"),
        "keyless": replace(default, key=False),
    }

    @property
    def needs_spread(self) -> bool:
        """Whether the features' distance is measured in units of the spread."""
        return self.config.features == "relative"

    def optimise(self, picture: Tensor, item: str, *, rng: Randomness) -> Optimisation:
        """Momentum steps down the loss."""
        unit = self.spread if self.needs_spread else float(self.authorised.expert.dim)
        key = _key_model(rng) if self.config.key else None
        return hide(picture, unit=unit, key=key, config=self.config, rng=rng.child("picture", item))

    def recover(self, images: Tensor, *, rng: Randomness) -> Tensor:
        """What the key model makes of protected pictures (N, 3, H, W); `rng` as `protect` was given it."""
        if not self.config.key:
            raise ConfigError("this release was made without a key model: nothing can be recovered from it")
        with torch.no_grad():
            return torch.cat([_key_model(rng)(image[None]) for image in images])


def _key_model(rng: Randomness) -> KeyModel:
    return KeyModel(rng.child("key model"))


def hide(picture: Tensor, *, unit: float, key: KeyModel | None, config: AvihConfig, rng: Randomness) -> Optimisation:
    """Optimise one picture (3, H, W) in [0, 1]. unit: what the squared feature distance is divided by."""
    features = (yield Query(picture, None)).features
    values = rng.child("start").normal(*picture.shape) if config.start == "noise" else picture
    velocity, length, before, rises = torch.zeros_like(values), config.step, math.inf, 0
    for _ in range(config.steps):
        answer = yield Query(values, features)
        seen, of_picture = picture_terms(values, picture, key, config)
        of_features = config.feature_weight / unit * answer.gradient
        if config.balance == "each":
            gradient = scaled(of_features) + config.share * scaled(of_picture)
        else:
            gradient = of_features + of_picture
        velocity = config.momentum * velocity + scaled(gradient)
        values = (values - length * velocity).clamp_(0, 1)
        loss = config.feature_weight / unit * answer.distance + seen
        rises += loss > before
        before = loss
        if rises == config.patience:
            length, rises = config.decay * length, 0
    shown = quantised(values)
    answer = yield Query(shown, features)
    details = {"feature_distance": answer.distance, "steps": config.steps}
    if key is not None:
        with torch.no_grad():
            details["key_error"] = (key(shown[None])[0] - picture).square().mean().item()
    return Optimised(shown, PictureReport(details=details))


def picture_terms(values: Tensor, picture: Tensor, key: KeyModel | None, config: AvihConfig) -> tuple[float, Tensor]:
    """What the key model's error and the variance add to the loss of (3, H, W), and the gradient of both."""
    leaf = values.detach().requires_grad_()
    with torch.enable_grad():
        loss = config.variance_weight * unevenness(leaf)
        if key is not None:
            loss = loss + config.key_weight * (key(leaf[None])[0] - picture).square().mean()
        (gradient,) = torch.autograd.grad(loss, leaf)
    return loss.item(), gradient


def unevenness(values: Tensor) -> Tensor:
    """The variance over all squares of a picture (3, H, W) of the sums over them, added up over the channels."""
    side = min(_SIDE, *values.shape[1:])
    sums = side**2 * F.avg_pool2d(values[None], side, stride=1)[0].flatten(1)
    each: Tensor = sums.var(1, correction=min(1, sums.shape[1] - 1))
    return each.sum()


def scaled(gradient: Tensor) -> Tensor:
    """The gradient over its mean magnitude; nothing stays nothing."""
    size = gradient.abs().mean()
    return gradient / size if size > 0 else gradient
