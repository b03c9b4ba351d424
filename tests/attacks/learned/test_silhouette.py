from __future__ import annotations

import numpy as np
import pytest
import torch
from sklearn.metrics import roc_auc_score

from tests.attacks.learners import BRIEF, HASTY, drawn, learned_target, noise_like
from veilkit.attacks import Masks, Pairs, run_gated
from veilkit.attacks.learned.foreground import foreground
from veilkit.attacks.learned.silhouette import Silhouette, SilhouetteConfig, areas, beyond_place, energy
from veilkit.attacks.pictures import HeldPictures
from veilkit.errors import DataError

TINY = SilhouetteConfig(8, 1, HASTY)


def masks_of(count: int = 200) -> np.ndarray:
    """People who mostly stand in the middle."""
    random = np.random.default_rng(0)
    masks = np.zeros((count, 16, 12), dtype=bool)
    for mask in masks:
        left = random.integers(1, 6)
        mask[2:14, left : left + 5] = True
    return masks


def test_areas_are_those_of_a_reference() -> None:
    masks, values = masks_of(5), np.random.default_rng(1).random((5, 16, 12)).round(1).astype(np.float32)
    expected = [roc_auc_score(mask.ravel(), value.ravel()) for mask, value in zip(masks, values, strict=True)]
    np.testing.assert_allclose(areas(values, masks), expected)
    assert np.isnan(areas(values[:1], np.ones((1, 16, 12), dtype=bool))).all()


def test_knowing_where_people_stand_is_not_seeing_them() -> None:
    """A guess from the mean mask with noise beats chance by far; beyond place nothing is left of it."""
    masks = masks_of()
    guess = (masks.mean(0) + 0.3 * np.random.default_rng(2).random(masks.shape)).astype(np.float32)
    assert areas(guess, masks).mean() > 0.85
    assert areas(beyond_place(guess), masks).mean() == pytest.approx(0.5, abs=0.01)
    assert areas(beyond_place(masks.astype(np.float32)), masks).mean() > 0.9


def test_energy_finds_people_in_patterns_and_nobody_in_noise() -> None:
    masks = masks_of(400)
    noise = np.random.default_rng(3).random((400, 3, 16, 12))
    shown = np.where(masks[:, None], noise, 0.5)
    images, plain = (torch.from_numpy((255 * each).round()).to(torch.uint8) for each in (shown, noise))
    assert areas(energy(images), masks).mean() > 0.9
    assert areas(energy(plain), masks).mean() == pytest.approx(0.5, abs=0.03)


def test_a_network_sees_people_before_a_dark_wall_and_none_in_noise() -> None:
    found, nothing = (
        Silhouette(TINY).run(learned_target(release, dark=True, budget=BRIEF))
        for release in (None, noise_like(drawn()[0]))
    )
    values = {score.metric: score.value for score in found.scores}
    assert values["AUC"] > 0.97 > found.details["mean mask"]
    assert values["AUC beyond place"] > 0.7
    noise = {score.metric: score for score in nothing.scores}
    assert noise["AUC beyond place"].value == pytest.approx(0.5, abs=0.08)
    assert noise["AUC beyond place, energy"].value == pytest.approx(0.5, abs=0.08)
    assert noise["AUC, energy"].value == pytest.approx(0.5, abs=0.08)


def test_masks_are_needed_on_both_sides() -> None:
    assert "where the people stand" in run_gated(Silhouette, learned_target(masks=None)).why_missing
    images = drawn()[0][:8]
    bare = Pairs(HeldPictures(images), HeldPictures(images), 1000 + np.arange(8))
    assert "without masks" in run_gated(Silhouette, learned_target(pairs=bare)).why_missing
    nobody = Masks(np.zeros((48, 16, 12), dtype=bool), "nobody")
    assert "both a person and a background" in run_gated(Silhouette, learned_target(masks=nobody)).why_missing
    with pytest.raises(DataError, match="boolean"):
        Masks(np.zeros((4, 2, 2)), "numbers")  # type: ignore[arg-type]


def test_foreground_is_cut_out_of_originals() -> None:
    random = np.random.default_rng(4)
    truth = np.zeros((3, 64, 32), dtype=bool)
    truth[:, 8:58, 10:22] = True
    wall = 0.2 + 0.05 * random.random((3, 64, 32, 3))
    shown = np.where(truth[..., None], np.array([0.9, 0.3, 0.2]) + 0.05 * random.random((3, 64, 32, 3)), wall)
    images = HeldPictures(torch.from_numpy(shown).permute(0, 3, 1, 2).float().clamp(0, 1))
    found = foreground(images, (64, 32))
    both, either = (found.values & truth).sum(), (found.values | truth).sum()
    assert both / either > 0.95
    assert "estimated" in found.source
    np.testing.assert_array_equal(found.values, foreground(images, (64, 32)).values)
    assert not foreground(images, (4, 4)).values.any()
