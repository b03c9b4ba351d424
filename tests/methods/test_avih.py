"""AVIH: its gradient against autograd, what it is driven to, and the key model."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch

from tests.methods.experts import pictures, toy_expert
from veilkit.errors import ConfigError
from veilkit.methods.avih import Avih, AvihConfig, closeness_gradient, key_gradient
from veilkit.methods.key_model import KeyModel
from veilkit.rng import Randomness
from veilkit.types import ImageBatch

RNG = Randomness.from_seed(4)


def protect(config: AvihConfig, images: torch.Tensor) -> tuple[torch.Tensor, tuple]:
    release = Avih(config, toy_expert()).protect(ImageBatch(images, tuple("abcdefgh"[: len(images)])), rng=RNG)
    assert release.images is not None
    assert release.reports is not None
    return release.images, release.reports


def test_gradients_are_those_of_the_loss() -> None:
    key = KeyModel(RNG)
    values, picture = pictures(2, 9, 7)
    leaf = values.clone().requires_grad_()
    variance = -(leaf - picture).var(correction=0)
    error = torch.nn.functional.mse_loss(key(leaf[None])[0], picture)
    for loss, ours in ((variance, closeness_gradient(values, picture)), (error, key_gradient(values, picture, key))):
        (wanted,) = torch.autograd.grad(loss, leaf)
        assert torch.allclose(ours, wanted, atol=1e-7)


def test_one_step_of_the_plain_sum() -> None:
    """Against autograd on the whole loss, from the same start."""
    image, expert = pictures(1), toy_expert()
    config = AvihConfig(steps=1, balance="sum", feature_weight=2.0, variance_weight=0.5, batch=1)
    made, _ = protect(config, image)
    start = (image + 0.05 * RNG.child("picture", "a").child("start").normal(3, 8, 6)).clamp(0, 1).requires_grad_()
    features = (expert.embed(start) - expert.embed(image)).square().mean()
    (gradient,) = torch.autograd.grad(2 * features - 0.5 * (start - image).var(correction=0), start)
    wanted = (start - 0.01 * gradient / gradient.abs().mean()).clamp(0, 1)
    assert (made - wanted).abs().max() <= 0.51 / 255 + 1e-5


def test_it_leaves_the_picture_and_keeps_the_features() -> None:
    images, expert = pictures(3), toy_expert()
    config = AvihConfig(steps=60, step=0.02, decay=0.95, batch=2)
    kept, reports = protect(config, images)
    lost, _ = protect(replace(config, feature_weight=0.0), images)
    assert (kept - images).var() > 0.02  # of which its start has 0.0025
    wanted = expert.embed(images)
    near, far = ((expert.embed(each) - wanted).square().sum(1) for each in (kept, lost))
    assert (near < 0.5 * far).all()
    assert [report["feature_distance"] for report in reports] == pytest.approx(near.tolist(), rel=1e-3)


def test_the_key_gets_back_what_another_does_not() -> None:
    images = pictures(2)
    method = Avih(
        AvihConfig(steps=80, step=0.03, key=True, key_weight=1.0, variance_weight=0.1, batch=2), toy_expert()
    )
    release = method.protect(ImageBatch(images, ("a", "b")), rng=RNG)
    assert release.images is not None
    assert release.reports is not None
    right = (method.recover(release.images, rng=RNG) - images).square().mean()
    wrong = (method.recover(release.images, rng=Randomness.from_seed(5)) - images).square().mean()
    assert right < 0.8 * wrong
    assert release.reports[0]["key_error"] > 0
    with pytest.raises(ConfigError, match="without a key model"):
        Avih(AvihConfig(), toy_expert()).recover(images, rng=RNG)
