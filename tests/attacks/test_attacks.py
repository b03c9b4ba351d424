"""The first attacks against what can be worked out by hand."""

from __future__ import annotations

import pytest
import torch

from tests.attacks.targets import originals, target
from veilkit.attacks.mean_image import MeanImage, mean_picture
from veilkit.attacks.own_original import OwnOriginal
from veilkit.attacks.person_search import Linkage, StockRecogniser
from veilkit.attacks.pictures import HeldPictures


def value(evidence, metric: str) -> float:
    return next(score.value for score in evidence.scores if score.metric == metric)


def test_colours_give_people_away_when_nothing_is_protected() -> None:
    assert value(StockRecogniser().run(target()), "rank-1") > 0.9
    assert value(Linkage().run(target()), "rank-1") > 0.9
    assert value(OwnOriginal().run(target()), "rank-1") == 1.0


def test_negatives_hide_people_from_linkage_but_not_from_each_other() -> None:
    """Every colour is mapped to another: protected pictures of one person still look alike, raw ones do not."""
    negative = HeldPictures([1 - image for image in (originals().load(i) for i in range(36))])
    assert value(StockRecogniser().run(target(negative)), "rank-1") > 0.9
    assert value(Linkage().run(target(negative)), "rank-1") < 0.5


def test_linkage_never_uses_the_pictures_own_original() -> None:
    """With every picture its own person but for two, the own original would be a sure but wrong answer."""
    shuffled = HeldPictures([originals().load((index + 3) % 36) for index in range(36)])
    assert value(Linkage().run(target(shuffled)), "rank-1") < 0.2
    assert value(OwnOriginal().run(target(shuffled)), "rank-1") == 0.0


def test_the_mean_of_black_and_white_is_grey() -> None:
    pictures = HeldPictures([torch.zeros(3, 12, 12), torch.ones(3, 12, 12)])
    assert torch.equal(mean_picture(pictures), torch.full((3, 12, 12), 0.5))
    evidence = MeanImage().run(target(pictures, originals=pictures, people=None))
    assert value(evidence, "PSNR") == pytest.approx(10 * torch.log10(torch.tensor(4.0)).item(), abs=1e-4)


def test_the_mean_of_public_pictures_comes_first() -> None:
    public = HeldPictures(torch.full((2, 3, 16, 16), 0.25))
    pictures = HeldPictures([torch.zeros(3, 12, 12), torch.zeros(3, 14, 12)])
    evidence = MeanImage().fit(None, public).run(target(pictures, originals=pictures, people=None))
    assert value(evidence, "PSNR") == pytest.approx(12.0412, abs=1e-3)  # -10 log10(0.25 ** 2)
    assert evidence.details["mean of"] == "public pictures"


def test_pictures_too_small_for_ssim_still_have_a_psnr() -> None:
    small = HeldPictures(torch.rand(3, 3, 8, 8, generator=torch.Generator().manual_seed(0)))
    evidence = MeanImage().run(target(small, originals=small, people=None))
    assert [score.metric for score in evidence.scores] == ["PSNR"]


def test_one_picture_cannot_be_mistaken_for_another() -> None:
    one = HeldPictures(torch.rand(1, 3, 8, 8, generator=torch.Generator().manual_seed(0)))
    evidence = OwnOriginal().run(target(one, originals=one, people=None))
    assert not evidence.applicable
    assert "only be linked to itself" in evidence.why_missing
