from __future__ import annotations

import numpy as np
import pytest
import torch

from tests.attacks.unpaired_targets import innocent, members, pictures, target
from veilkit.attacks.pictures import HeldPictures
from veilkit.attacks.synthetic_release.base import UnpairedRelease
from veilkit.attacks.synthetic_release.memorisation import Memorisation
from veilkit.attacks.synthetic_release.nearest import RememberedPictures, nearest, pixel_vectors
from veilkit.attacks.synthetic_release.neighbours import Neighbours, matched_people, matched_pictures, nearest_people
from veilkit.rng import Randomness

RNG = Randomness.from_seed(0)


def scores(evidence) -> dict[str, float]:
    return {score.metric: score.value for score in evidence.scores}


def test_copies_are_nearest_to_themselves_in_all_views() -> None:
    found = scores(Memorisation().run(target()))
    for view in ("pixels", "SSIM", "recogniser"):
        assert found[f"nearer to training ({view})"] == 1.0
        assert found[f"nearer than other pictures of them ({view})"] == 1.0
        assert found[f"distance ratio ({view})"] == pytest.approx(0.0, abs=1e-3)  # SSIM rounds


def test_brighter_and_flatter_copies_are_still_copies() -> None:
    held = members()
    changed = HeldPictures([0.3 + 0.5 * held.pictures.load(i) for i in range(len(held))])
    found = scores(Memorisation().run(target(UnpairedRelease(changed, held.people))))
    assert found["nearer to training (pixels)"] == 1.0
    assert found["distance ratio (pixels)"] < 0.01


def test_new_pictures_of_training_people_are_near_them_but_copy_nothing() -> None:
    shown = pictures(range(14), [7, 8])
    evidence = Memorisation().run(target(UnpairedRelease(shown.pictures, shown.people)))
    assert scores(evidence)["nearer to training (pixels)"] > 0.9
    strict = next(s for s in evidence.scores if s.metric == "nearer than other pictures of them (pixels)")
    assert strict.low < 0.5 < strict.high


def test_copies_of_held_out_pictures_count_against_memorisation() -> None:
    held_out = pictures(range(14, 28), range(2))
    release = UnpairedRelease(held_out.pictures, members().people)
    assert scores(Memorisation().run(target(release)))["nearer to training (pixels)"] == 0.0


def test_one_picture_that_is_everybodys_neighbour_proves_nothing() -> None:
    """All synthetic pictures are the same: one outcome, however many say it."""
    grey = pictures([50], [0]).pictures.load(0)
    release = UnpairedRelease(HeldPictures([grey] * 28), members().people)
    score = Memorisation().run(target(release)).scores[0]
    assert score.value in (0.0, 1.0)
    assert score.low < 0.5 < score.high


def test_one_person_alone_cannot_be_compared() -> None:
    assert "two people" in Memorisation().run(target(held_out=pictures([70], [0, 1]))).why_missing


def test_matched_sets_have_equally_many_people_and_pictures() -> None:
    first, second = np.repeat(np.arange(9), [1, 2, 3, 4, 5, 6, 7, 8, 9]), np.repeat([20, 21, 22], [2, 5, 9])
    sets = matched_people(first, second, RNG)
    for people, places in ((first, sets.first), (second, sets.second)):
        assert len(np.unique(places)) == len(places) == len(sets.pair)
        pairs = {(int(pair), int(code)) for pair, code in zip(sets.pair, people[places], strict=True)}
        assert len(pairs) == 3  # each pair is one person of each set
    own = matched_pictures(np.array([0, 0, 0, 1, 2]), np.array([0, 0, 2, 2, 3]), RNG)
    assert np.array([0, 0, 0, 1, 2])[own.first].tolist() == [0, 0, 2]
    assert np.array([0, 0, 2, 2, 3])[own.second].tolist() == [0, 0, 2]


def test_nearest_people_are_those_of_a_plain_search() -> None:
    random = np.random.default_rng(0)
    query, reference = (random.normal(size=(n, 5)).astype(np.float32) for n in (150, 40))
    pair = np.arange(40) // 4
    near, people, places = nearest_people(query, reference, pair, 3)
    table = np.linalg.norm(query[:, None] - reference[None], axis=2)
    by_person = table.reshape(150, 10, 4).min(axis=2)
    assert np.array_equal(people, np.argsort(by_person, axis=1)[:, :3])
    assert near == pytest.approx(np.sort(by_person, axis=1)[:, :3], rel=1e-5)
    assert np.array_equal(places[:, 0], table.argmin(axis=1))
    assert np.array_equal(nearest(query, reference)[1][:, 0], table.argmin(axis=1))


def test_swapping_people_gives_one_half_on_average_and_the_spread_of_the_coin() -> None:
    """Each of 40 pictures has a pair of its own as its neighbours: the share is that of 40 coins."""
    near = np.stack([np.full((40, 1), 1.0), np.full((40, 1), 2.0)]).astype(np.float32)
    found = Neighbours(near, np.stack([np.arange(40)[:, None]] * 2))
    shares, ratios = found.swapped(RNG)
    assert (found.ratio, found.outcomes) == (0.5, 40)
    assert shares.mean() == pytest.approx(0.5, abs=0.01)
    assert shares.std() == pytest.approx(0.5 / np.sqrt(40), rel=0.1)
    assert np.median(ratios) == pytest.approx(1.0, abs=0.05)


def test_small_pixels_forget_brightness_and_contrast_only() -> None:
    picture = torch.rand(1, 3, 40, 20, generator=torch.Generator().manual_seed(0))
    plain, changed, mirrored = (pixel_vectors(HeldPictures(p)) for p in (picture, 0.2 + picture / 2, picture.flip(3)))
    assert np.linalg.norm(plain - changed) < 1e-4
    assert np.linalg.norm(plain - mirrored) > 0.5
    assert np.linalg.norm(plain) == pytest.approx(1.0, abs=1e-5)


def test_remembered_pictures_are_read_once() -> None:
    class Counting(HeldPictures):
        reads = 0

        def load(self, index: int) -> torch.Tensor:
            self.reads += 1
            return super().load(index)

    counting = Counting(torch.rand(5, 3, 16, 16))
    held = RememberedPictures(counting)
    assert np.array_equal(pixel_vectors(held), pixel_vectors(held))
    assert counting.reads == 5


def test_noise_in_place_of_pictures_is_as_near_to_both_sets() -> None:
    for seed in range(2):
        score = Memorisation().run(target(innocent(seed), unseen=None)).scores[0]
        assert score.low < 0.5 < score.high
