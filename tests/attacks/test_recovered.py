"""What was recovered: its scores, a stolen decoder, and the average of several protections."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from tests.attacks.learners import drawn, learned_target
from tests.attacks.targets import noise, originals, target
from veilkit.attacks import Budget, Pairs, run_gated
from veilkit.attacks.averaging import Averaging, averages, stretched
from veilkit.attacks.pictures import HeldPictures
from veilkit.attacks.recovered import CEILING, likeness, mean_of, own_bound, score_recovered
from veilkit.attacks.stolen_decoder import StolenDecoder, undone
from veilkit.errors import ConfigError
from veilkit.rng import Randomness
from veilkit.types import Evidence, Level


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


def value(evidence: Evidence, metric: str) -> float:
    return next(score.value for score in evidence.scores if score.metric == metric)


def negatives() -> HeldPictures:
    return HeldPictures([1 - originals().load(index) for index in range(36)])


def test_the_decoder_of_negatives_brings_everything_back() -> None:
    attacked = target(negatives(), decoder=lambda images: 1 - images)
    evidence = run_gated(StolenDecoder, attacked)
    assert (evidence.level, evidence.invalid) == (Level.L3, ())
    assert value(evidence, "rank-1") == 1.0
    assert value(evidence, "PSNR") == 60.0
    assert evidence.details["as released"]["rank-1"] < 0.5  # a release that hides, and only the decoder undoes
    assert evidence.details["gates"]["on originals"] == 1.0


def test_a_decoder_that_knows_nothing_finds_nothing() -> None:
    attacked = target(negatives(), decoder=torch.zeros_like)
    evidence = run_gated(StolenDecoder, attacked)
    assert value(evidence, "person rank-1") < 0.3
    assert "below the mean image's" in evidence.invalid[0].text


def test_what_it_makes_is_rounded_as_a_file_would_be() -> None:
    grey = HeldPictures([torch.full((3, 20, 12), 0.5), torch.full((3, 16, 16), 0.25)])
    made = undone(grey, lambda images: images + 0.3, (16, 16))
    assert made.shape == (2, 3, 16, 16)
    assert torch.allclose(made[0], torch.tensor(204 / 255), atol=1e-6)
    assert torch.allclose(made[1], torch.tensor(140 / 255), atol=1e-6)


def test_the_mean_image_is_that_of_the_public_pictures() -> None:
    black = HeldPictures(torch.zeros(3, 3, 32, 16))
    evidence = StolenDecoder().run(target(noise(), pairs=Pairs(black, black, np.array([90, 91, 92]))))
    darkness = torch.stack([originals().load(index) for index in range(36)]).square().flatten(1).mean(1)
    expected = float((-10 * torch.log10(darkness)).mean())
    assert evidence.details["mean image"]["PSNR"] == pytest.approx(expected, abs=1e-3)


def test_without_a_decoder_or_with_one_picture_it_does_not_apply() -> None:
    evidence = run_gated(StolenDecoder, target(decoder=None))
    assert evidence.why_missing == "no decoder of this release is at hand"
    one = HeldPictures(torch.rand(1, 3, 16, 16, generator=torch.Generator().manual_seed(0)))
    alone = run_gated(StolenDecoder, target(one, originals=one, people=None, search=None))
    assert "only itself" in alone.why_missing


def noisy(images: torch.Tensor, draw: int, share: float = 0.5) -> torch.Tensor:
    """Noise of a standard deviation of share / sqrt(12), independent for each picture and draw."""
    rng = Randomness.from_seed(7)
    noise = [rng.child(draw, image.numpy().tobytes()).uniform(*image.shape) for image in images]
    return images * (1 - share) + share * torch.stack(noise)


def test_the_error_falls_by_the_root_of_their_number() -> None:
    pictures = HeldPictures(torch.rand(20, 3, 16, 12, generator=torch.Generator().manual_seed(1)))
    counts = (1, 4, 16, 64)
    found = averages(pictures, noisy, counts, (16, 12))
    clean = torch.stack([pictures.load(i) for i in range(20)]) / 2 + 0.25
    errors = np.array([float((found[n] - clean).square().mean().sqrt()) for n in counts])
    np.testing.assert_allclose(errors, 0.5 / np.sqrt(12) / np.sqrt(counts), rtol=0.03)


def test_sixteen_protections_tell_what_one_does_not() -> None:
    def hide(images: torch.Tensor, draw: int) -> torch.Tensor:
        return noisy(images, draw, 0.9)

    images = drawn()[0]
    evidence = run_gated(lambda: Averaging((1, 16)), learned_target(hide(images, 99), protector=hide))
    values = {score.metric: score.value for score in evidence.scores}
    assert evidence.scores[0].metric == "rank-1, 16 averaged"
    assert evidence.invalid == ()
    assert values["rank-1, 16 averaged"] > values["rank-1, 1 averaged"] + 0.1
    assert values["PSNR, 16 averaged"] > values["PSNR, 1 averaged"] + 2
    assert values["stretched rank-1, 16 averaged"] > values["rank-1, 1 averaged"] + 0.1
    assert evidence.details["chance"]["stretched rank-1, 16 averaged"] == pytest.approx(1 / 48)


def test_stretching_gives_contrast_back() -> None:
    images = drawn()[0]
    torch.testing.assert_close(stretched(images, images), images)
    torch.testing.assert_close(stretched(0.4 + images / 10, images), images, atol=1e-4, rtol=0)
    assert torch.equal(stretched(torch.zeros_like(images), images).unique(), images.mean()[None])


def test_one_key_for_all_draws_gives_nothing_to_average() -> None:
    images = drawn()[0]
    found = averages(HeldPictures(images[:3]), lambda some, draw: noisy(some, 0), (1, 4), (16, 12))
    torch.testing.assert_close(found[1], found[4])


def test_the_budget_bounds_how_often_pictures_are_protected() -> None:
    calls = []

    def count(images: torch.Tensor, draw: int) -> torch.Tensor:
        calls.append(len(images))
        return images

    Averaging((4,)).run(learned_target(protector=count, budget=Budget(updates=10, batch=4)))
    assert sum(calls) == 10 * 4


def test_what_it_needs_is_said() -> None:
    assert "under other keys" in run_gated(Averaging, learned_target(protector=None)).why_missing
    with pytest.raises(ConfigError, match="rise"):
        Averaging((4, 1))
