"""Discriminators with features: their losses against torch's own, and what feature matching compares."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F

from veilkit.methods.disguise.critics import (
    Critics,
    CriticsConfig,
    Judged,
    critic_loss,
    fooling_loss,
    weak_feature_matching,
)


def judged(*logits: list[float]) -> tuple[Judged, ...]:
    return tuple(Judged(torch.tensor(each), ()) for each in logits)


def test_the_hinge_by_hand() -> None:
    real, made = judged([2.0, 0.5], [-1.0]), judged([-3.0, 0.0], [0.5])
    assert critic_loss(real, made, "hinge").item() == pytest.approx((0.5 / 2 + 1 / 2) + (2 + 1.5))
    assert fooling_loss(made, "hinge").item() == pytest.approx(1.5 - 0.5)


def test_the_printed_form_against_torchs_cross_entropy() -> None:
    real, made = judged([2.0, 0.5], [-1.0]), judged([-3.0, 0.0], [0.5])
    expected = sum(
        F.binary_cross_entropy_with_logits(r.logits, torch.ones_like(r.logits))
        + F.binary_cross_entropy_with_logits(m.logits, torch.zeros_like(m.logits))
        for r, m in zip(real, made, strict=True)
    )
    torch.testing.assert_close(critic_loss(real, made, "log"), expected)
    printed = sum(torch.log(1 - torch.sigmoid(m.logits)).mean() for m in made)
    torch.testing.assert_close(fooling_loss(made, "log"), printed)


def test_scales_features_and_weak_matching() -> None:
    torch.manual_seed(0)
    critics = Critics(CriticsConfig(count=2, width=4, layers=3))
    images, others = torch.rand(2, 3, 32, 32), torch.rand(2, 3, 32, 32)
    seen, wanted = critics(others), critics(images)
    assert [len(each.features) for each in seen] == [4, 4]
    assert seen[0].logits.shape[2] > seen[1].logits.shape[2]
    assert seen[0].logits.shape[:2] == (2, 1)
    torch.testing.assert_close(
        critics(images)[1].logits, critics.each[1](F.avg_pool2d(images, 3, 2, 1, count_include_pad=False)).logits
    )
    expected = sum(
        ((w.features[2] - s.features[2]).abs().mean() + (w.features[3] - s.features[3]).abs().mean()) / 2
        for w, s in zip(wanted, seen, strict=True)
    )
    torch.testing.assert_close(weak_feature_matching(wanted, seen), expected)
    assert weak_feature_matching(wanted, wanted).item() == 0


def test_matching_teaches_the_made_picture_only() -> None:
    critics = Critics(CriticsConfig(count=1, width=4, layers=2))
    real, made = torch.rand(1, 3, 16, 16, requires_grad=True), torch.rand(1, 3, 16, 16, requires_grad=True)
    weak_feature_matching(critics(real), critics(made)).backward()
    assert real.grad is None or not real.grad.any()
    assert made.grad is not None
    assert made.grad.any()
