"""AVIH: its gradient against autograd, what it is driven to, and the key model."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch

from tests.methods.experts import pictures, toy_expert
from veilkit.errors import ConfigError
from veilkit.methods.avih.method import Avih, AvihConfig, KeyModel, picture_terms, unevenness
from veilkit.rng import Randomness
from veilkit.types import ImageBatch

RNG = Randomness.from_seed(4)


def protect(config: AvihConfig, images: torch.Tensor) -> tuple[torch.Tensor, tuple]:
    release = Avih(config, toy_expert()).protect(ImageBatch(images, tuple("abcdefgh"[: len(images)])), rng=RNG)
    assert release.images is not None
    assert release.reports is not None
    return release.images, release.reports


def test_unevenness_is_the_variance_of_sums_over_squares() -> None:
    picture = pictures(1, 9, 7)[0]
    wanted = 0.0
    for channel in picture:
        sums = [channel[row : row + 4, column : column + 4].sum() for row in range(6) for column in range(4)]
        wanted += torch.stack(sums).var().item()
    assert unevenness(picture).item() == pytest.approx(wanted, rel=1e-4)
    assert unevenness(torch.full((3, 9, 7), 0.3)).item() == pytest.approx(0, abs=1e-6)
    assert unevenness(torch.full((3, 2, 1), 0.3)).isfinite()  # smaller than a square


def test_one_step_of_the_plain_sum() -> None:
    """Against autograd on the whole loss, from the same noise."""
    image, expert, key = pictures(1), toy_expert(), KeyModel(RNG.child("key model"))
    config = AvihConfig(steps=1, balance="sum", feature_weight=2.0, variance_weight=0.5, key_weight=0.7, batch=1)
    made, _ = protect(config, image)
    start = RNG.child("picture", "a").child("start").normal(3, 8, 6)[None].requires_grad_()
    features = (expert.embed(start) - expert.embed(image)).square().mean()
    loss = 2 * features + 0.5 * unevenness(start[0]) + 0.7 * torch.nn.functional.mse_loss(key(start), image)
    (gradient,) = torch.autograd.grad(loss, start)
    wanted = (start - 0.01 * gradient / gradient.abs().mean()).clamp(0, 1)
    assert (made - wanted).abs().max() <= 0.51 / 255 + 1e-5


def test_terms_of_the_picture_are_told_with_their_gradient() -> None:
    values, picture = pictures(2, 9, 7)
    key, config = KeyModel(RNG), AvihConfig(variance_weight=0.3, key_weight=0.6)
    told, gradient = picture_terms(values, picture, key, config)
    leaf = values.clone().requires_grad_()
    loss = 0.3 * unevenness(leaf) + 0.6 * torch.nn.functional.mse_loss(key(leaf[None])[0], picture)
    (wanted,) = torch.autograd.grad(loss, leaf)
    assert told == pytest.approx(loss.item(), rel=1e-5)
    assert torch.allclose(gradient, wanted, atol=1e-6)


def test_it_is_noise_that_keeps_the_features() -> None:
    images, expert = pictures(3), toy_expert()
    config = AvihConfig(steps=60, step=0.02, batch=2)
    kept, reports = protect(config, images)
    lost, _ = protect(replace(config, feature_weight=0.0), images)
    wanted = expert.embed(images)
    near, far = ((expert.embed(each) - wanted).square().sum(1) for each in (kept, lost))
    assert (near < 0.5 * far).all()
    assert [report.details["feature_distance"] for report in reports] == pytest.approx(near.tolist(), rel=1e-3)
    centred = [(each - each.mean()).flatten() for each in (kept, images)]
    assert abs(torch.nn.functional.cosine_similarity(*centred, dim=0)) < 0.35  # nothing of the start is the picture


def test_the_key_gets_back_what_another_does_not() -> None:
    images = pictures(2)
    method = Avih(AvihConfig(steps=80, step=0.03, share=1.0, batch=2), toy_expert())
    release = method.protect(ImageBatch(images, ("a", "b")), rng=RNG)
    assert release.images is not None
    assert release.reports is not None
    right = (method.recover(release.images, rng=RNG) - images).square().mean()
    wrong = (method.recover(release.images, rng=Randomness.from_seed(5)) - images).square().mean()
    assert right < 0.8 * wrong
    assert release.reports[0].details["key_error"] > 0
    with pytest.raises(ConfigError, match="without a key model"):
        Avih.configured("keyless", {}).recover(images, rng=RNG)


def test_the_step_shrinks_where_the_loss_keeps_rising() -> None:
    """With a step far too long the loss goes up and down: with patience the last picture is nearer."""
    images, expert = pictures(2), toy_expert()
    config = AvihConfig(steps=80, step=0.3, key=False, variance_weight=0.0, batch=2)
    hasty, patient = (protect(replace(config, patience=patience), images)[0] for patience in (1, 1000))
    distances = [(expert.embed(each) - expert.embed(images)).square().sum().item() for each in (hasty, patient)]
    assert distances[0] < distances[1]
