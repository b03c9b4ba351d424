"""Attacks that search with a recogniser, against what can be worked out by hand; who searches for whom."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from tests.attacks.targets import originals, target
from veilkit.attacks.mean_image import MeanImage, mean_picture
from veilkit.attacks.own_original import OwnOriginal
from veilkit.attacks.person_search import Linkage, StockRecogniser
from veilkit.attacks.pictures import HeldPictures
from veilkit.attacks.search import Search, plan_search


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


def test_the_mean_is_resized_to_each_original() -> None:
    pictures = HeldPictures([torch.zeros(3, 12, 12), torch.zeros(3, 14, 12)])
    grey = HeldPictures(torch.full((2, 3, 16, 16), 0.25))
    evidence = MeanImage().run(target(grey, originals=pictures, people=None))
    assert value(evidence, "PSNR") == pytest.approx(12.0412, abs=1e-3)  # -10 log10(0.25 ** 2)
    assert evidence.details["mean of"] == "the protected pictures"


def test_pictures_too_small_for_ssim_still_have_a_psnr() -> None:
    small = HeldPictures(torch.rand(3, 3, 8, 8, generator=torch.Generator().manual_seed(0)))
    evidence = MeanImage().run(target(small, originals=small, people=None))
    assert [score.metric for score in evidence.scores] == ["PSNR"]


def test_one_picture_cannot_be_mistaken_for_another() -> None:
    one = HeldPictures(torch.rand(1, 3, 8, 8, generator=torch.Generator().manual_seed(0)))
    evidence = OwnOriginal().run(target(one, originals=one, people=None))
    assert not evidence.applicable
    assert "only be linked to itself" in evidence.why_missing


def shuffled_scores(search: Search, draws: int = 4000) -> dict[str, float]:
    """The reference for chance: what random orders of the gallery really score."""
    random = np.random.default_rng(0)
    found: dict[str, list[float]] = {"rank-1": [], "rank-5": [], "mAP": []}
    for place, query in enumerate(search.query):
        entries = [
            entry
            for at, entry in enumerate(search.gallery)
            if at != search.own[place]
            and not (
                search.cameras is not None
                and search.identities[entry] == search.identities[query]
                and search.cameras[entry] == search.cameras[query]
            )
        ]
        right = search.identities[entries] == search.identities[query]
        if not right.any():
            continue
        for _ in range(draws // len(search.query)):
            order = random.permutation(right)
            ranks = np.flatnonzero(order) + 1
            found["rank-1"].append(float(ranks[0] <= 1))
            found["rank-5"].append(float(ranks[0] <= 5))
            found["mAP"].append(float(np.mean(np.arange(1, len(ranks) + 1) / ranks)))
    return {name: float(np.mean(values)) for name, values in found.items()}


@pytest.mark.parametrize("with_cameras", [False, True])
def test_chance_is_what_random_orders_score(with_cameras: bool) -> None:
    identities = ["a"] * 5 + ["b"] * 3 + ["c"] * 4 + [None, None]
    cameras = [str(index % 2) if with_cameras else None for index in range(14)]
    search, _ = plan_search(identities, cameras, range(14), range(14))
    assert search is not None
    assert (search.cameras is not None) == with_cameras
    chance, reference = search.chance((1, 5)), shuffled_scores(search)
    for metric, value in reference.items():
        assert chance[metric] == pytest.approx(value, abs=0.03)


def test_more_answers_than_entries_are_always_right() -> None:
    search, _ = plan_search(["a", "a", "b", "b"], [None] * 4, range(4), range(4))
    assert search is not None
    assert search.chance()["rank-1"] == pytest.approx(1 / 3)
    assert search.chance()["rank-10"] == 1.0


@pytest.mark.parametrize(
    ("identities", "said"),
    [
        ([None, None], "nobody knows"),
        (["a", "a"], "one person only"),
        (["a", "b", "c"], "one picture of each person"),
    ],
)
def test_what_cannot_be_searched_is_said(identities: list[str | None], said: str) -> None:
    search, notes = plan_search(identities, [None] * len(identities), range(len(identities)), range(len(identities)))
    assert search is None
    assert said in notes[0]


def test_one_camera_for_each_person_counts_without_cameras() -> None:
    search, notes = plan_search(["a", "a", "b", "b"], ["1", "1", "2", "2"], range(4), range(4))
    assert search is not None
    assert search.cameras is None
    assert "nobody was seen by two cameras" in " ".join(notes)


def test_unknown_people_are_never_right_and_never_ask() -> None:
    search, notes = plan_search(["a", None, "b", "a", None, "b"], [None] * 6, range(6), range(6))
    assert search is not None
    assert list(search.query) == [0, 2, 3, 5]
    right, entries = search.candidates()
    assert list(right) == [1, 1, 1, 1]
    assert list(entries) == [5, 5, 5, 5]
    assert "2 pictures of unknown people" in notes[0]


def test_a_part_of_a_search_keeps_its_pictures() -> None:
    search, _ = plan_search(["a", "b", "a", "b", "c", "c"], ["1", "1", "2", "2", "1", "2"], [0, 1, 4], [2, 3, 5])
    assert search is not None
    part = search.only(np.array([0, 2, 4, 5]))
    assert list(part.query) == [0, 2]
    assert sorted(part.gallery) == [1, 3]
    assert list(part.candidates()[0]) == [1, 1]


def test_equal_features_score_what_guessing_does() -> None:
    """One colour for everybody: the order of the gallery must not know who is who."""
    identities = [f"p{index // 4}" for index in range(400)]
    search, _ = plan_search(identities, [None] * 400, range(400), range(400))
    assert search is not None
    flat = np.ones((400, 2), dtype=np.float32)
    assert search.find(flat, flat).mean_ap == pytest.approx(search.chance()["mAP"], rel=0.3)


def test_a_part_in_which_nobody_is_searched_for_has_no_candidates() -> None:
    search = Search(query=np.array([0, 1]), gallery=np.array([2, 3]), identities=np.array([0, 1, 0, 1]))
    right, left = search.only(np.array([2, 3])).candidates()
    assert len(right) == len(left) == 0
