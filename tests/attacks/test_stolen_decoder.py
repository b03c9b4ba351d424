"""A stolen decoder against protections whose decoder is known by hand."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from tests.attacks.targets import noise, originals, target
from veilkit.attacks import Pairs, run_gated
from veilkit.attacks.pictures import HeldPictures
from veilkit.attacks.stolen_decoder import StolenDecoder, undone
from veilkit.types import Evidence, Level


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
