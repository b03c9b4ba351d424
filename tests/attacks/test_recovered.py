from __future__ import annotations

import numpy as np
import pytest
import torch

from tests.attacks.learners import drawn, learned_target
from veilkit.attacks.recovered import CEILING, likeness, mean_of, own_bound, score_recovered


def test_the_batch_scale_forgives_a_wrong_contrast_and_the_fixed_one_does_not() -> None:
    images = torch.rand(4, 3, 16, 12, generator=torch.Generator().manual_seed(0))
    found = likeness(0.25 + images / 2, images)
    assert (found["PSNR (batch scale)"] > 50).all()
    assert (found["SSIM (batch scale)"] > 0.999).all()
    error = ((0.25 - images / 2).square().flatten(1).mean(1)).numpy()
    np.testing.assert_allclose(found["PSNR"], -10 * np.log10(error), atol=1e-3)


def test_equal_pictures_are_at_the_ceiling_and_small_ones_have_no_ssim() -> None:
    images = (torch.rand(3, 3, 8, 8) * 255).to(torch.uint8)
    found = likeness(images, images)
    assert set(found) == {"PSNR", "PSNR (batch scale)"}
    assert (found["PSNR"] == CEILING).all()


def test_the_originals_themselves_score_all_and_the_mean_image_scores_chance() -> None:
    images, _ = drawn()
    mean = mean_of((images * 255).round().to(torch.uint8), (16, 12))
    torch.testing.assert_close(mean, images.mean(0))
    target = learned_target(1 - images)
    best = score_recovered(target, images, mean)
    values = {score.metric: score for score in best.scores}
    assert best.scores[0].metric == "rank-1"
    assert values["rank-1"].value == own_bound(target) == 1.0
    assert values["PSNR"].value == pytest.approx(CEILING)
    assert "mean image" in values["SSIM"].note
    assert "broken" in values["PSNR (batch scale)"].note
    assert best.invalid == ()
    raw = target.search.find(*[target.originals.features(target.recogniser)] * 2)
    assert values["person mAP"].value == pytest.approx(raw.mean_ap)
    idle = score_recovered(target, mean[None].expand_as(images), mean)
    assert idle.scores[0].value == pytest.approx(1 / 48)
    assert idle.invalid == ()


def test_worse_than_the_mean_image_is_invalid() -> None:
    images, _ = drawn()
    found = score_recovered(learned_target(), 1 - images, images.mean(0))
    assert "below the mean image" in found.invalid[0].text
