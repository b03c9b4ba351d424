"""AVIH: the picture is driven away from the original while the expert's features stay (see docs/methods/avih.md)."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

import torch
from torch import Tensor

from veilkit.configs import check_range
from veilkit.errors import ConfigError
from veilkit.methods.authorised import Ask
from veilkit.methods.courses import Course, Made, quantised
from veilkit.methods.expert_bound import ExpertBound, ExpertSettings
from veilkit.methods.key_model import KeyModel
from veilkit.rng import Randomness


@dataclass(frozen=True, slots=True)
class AvihConfig(ExpertSettings):
    """Settings of AVIH, beside those of the expert (expert, batch, spread).

    loss = feature_weight * features + key_weight * MSE(key model(protected), original)
    - variance_weight * variance of (protected - original), all on the scale [0, 1].
    features: the squared distance over the dimensions ("mean", as released) or over the spread ("relative").
    key: whether there is a key model at all. balance: "sum" descends the loss as it stands, in which the scale of an
    expert's features decides whether anything is hidden; "each" divides the gradient of each term by its mean
    magnitude before they are weighed, so that the weights mean the same for every expert. variance_weight: 3 moves
    features about as far as PixelFade's limit lets ours (under the expert of models/); 1 is the paper's sum.
    steps: 100 in PixelFade's comparison. momentum, step: of the gradient over its mean magnitude. The step shrinks by
    `decay` after every `decay_every` steps; start is the standard deviation of the noise that it begins with, since
    at the original itself every gradient is zero. Neither is told by the facts that we have.
    """

    steps: int = 100
    step: float = 0.01
    decay: float = 0.85
    decay_every: int = 10
    momentum: float = 0.3
    features: Literal["mean", "relative"] = "mean"
    balance: Literal["each", "sum"] = "each"
    feature_weight: float = 1.0
    variance_weight: float = 3.0
    key: bool = False
    key_weight: float = 0.2
    start: float = 0.05

    def __post_init__(self) -> None:
        ExpertSettings.__post_init__(self)
        check_range("steps", self.steps, 1, 100_000)
        check_range("step", self.step, 1e-6, 10)
        check_range("decay", self.decay, 0.01, 1)
        check_range("decay_every", self.decay_every, 1, 100_000)
        check_range("momentum", self.momentum, 0, 0.9999)
        check_range("start", self.start, 1e-6, 1)
        for name in ("feature_weight", "variance_weight", "key_weight"):
            check_range(name, getattr(self, name), 0, 1e9)


class Avih(ExpertBound[AvihConfig]):
    """Adversarial visual information hiding (Su et al., ICCV 2023), PixelFade's closest rival.

    The default is its protection alone, as PixelFade compares with; the preset `key` adds the key model, with which
    the holder of the key gets an approximation of the original back (`recover`). `released` is the plain sum of the
    three terms; on the packaged expert it hides next to nothing, since the features' gradient outweighs the rest.
    """

    name = "avih"
    summary = "driven away from the picture while one authorised expert's features stay"
    default = AvihConfig()
    presets = {  # noqa: RUF012
        "key": replace(default, key=True),
        "released": replace(default, key=True, balance="sum", variance_weight=1.0),
    }

    @property
    def needs_spread(self) -> bool:
        """Whether the features' distance is measured in units of the spread."""
        return self.config.features == "relative"

    def course(self, picture: Tensor, item: str, *, rng: Randomness) -> Course:
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


def hide(picture: Tensor, *, unit: float, key: KeyModel | None, config: AvihConfig, rng: Randomness) -> Course:
    """Optimise one picture (3, H, W) in [0, 1]. unit: what the squared feature distance is divided by."""
    features = (yield Ask(picture, None)).features
    values = (picture + config.start * rng.child("start").normal(*picture.shape)).clamp_(0, 1)
    velocity = torch.zeros_like(values)
    for step in range(config.steps):
        answer = yield Ask(values, features)
        terms = [
            (config.feature_weight, answer.gradient / unit),
            (config.variance_weight, closeness_gradient(values, picture)),
        ]
        if key is not None:
            terms.append((config.key_weight, key_gradient(values, picture, key)))
        each = config.balance == "each"
        gradient = torch.stack([weight * (scaled(term) if each else term) for weight, term in terms]).sum(0)
        velocity = config.momentum * velocity + scaled(gradient)
        values = (values - config.step * config.decay ** (step // config.decay_every) * velocity).clamp_(0, 1)
    shown = quantised(values)
    answer = yield Ask(shown, features)
    report = {"feature_distance": answer.distance, "steps": config.steps}
    if key is not None:
        with torch.no_grad():
            report["key_error"] = (key(shown[None])[0] - picture).square().mean().item()
    return Made(shown, report)


def scaled(gradient: Tensor) -> Tensor:
    """The gradient over its mean magnitude; nothing stays nothing."""
    size = gradient.abs().mean()
    return gradient / size if size > 0 else gradient


def closeness_gradient(values: Tensor, picture: Tensor) -> Tensor:
    """The gradient of minus the variance of (values - picture)."""
    apart = values - picture
    return -2 / apart.numel() * (apart - apart.mean())


def key_gradient(values: Tensor, picture: Tensor, key: KeyModel) -> Tensor:
    """The gradient of MSE(key(values), picture)."""
    leaf = values.detach().requires_grad_()
    with torch.enable_grad():
        error = (key(leaf[None])[0] - picture).square().mean()
        (gradient,) = torch.autograd.grad(error, leaf)
    return gradient
