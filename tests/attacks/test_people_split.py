from __future__ import annotations

import numpy as np
import pytest
import torch

from tests.attacks.learners import BUDGET, drawn, learned_target, people
from veilkit.attacks import Budget, Masks, Pairs
from veilkit.attacks.gated import Trial
from veilkit.attacks.people_split import attack_size, divide, pixels, some_people, victims_of
from veilkit.attacks.pictures import HeldPictures
from veilkit.errors import ConfigError, DataError
from veilkit.rng import Randomness


def stack(pictures) -> torch.Tensor:
    return torch.stack([pictures.load(index) for index in range(len(pictures))])


def test_who_teaches_is_never_attacked() -> None:
    division = divide(learned_target(1 - drawn()[0]))
    assert not np.intersect1d(division.public.people, division.victims.people).size
    assert len(division.public) + len(division.victims.originals) == 48
    assert torch.equal(stack(division.public.protected), 1 - stack(division.public.originals))
    assert division.details["public people"] == 12
    assert division.public.masks is not None


def test_pairs_of_others_teach_and_everybody_is_attacked() -> None:
    images, masks = drawn()
    pairs = Pairs(HeldPictures(images[:8]), HeldPictures(1 - images[:8]), 1000 + np.arange(8), Masks(masks[:8], "d"))
    division = divide(learned_target(pairs=pairs))
    assert len(division.victims.originals) == len(victims_of(learned_target(pairs=pairs)).originals) == 48
    assert not np.intersect1d(division.public.people, people()).size
    assert division.source == "pairs of other people"
    with pytest.raises(DataError, match="never scored"):
        divide(learned_target(pairs=Pairs(pairs.originals, pairs.protected, np.arange(8))))
    with pytest.raises(DataError, match="as many"):
        Pairs(pairs.originals, pairs.protected, np.arange(7))


def test_too_few_people_are_said() -> None:
    few = learned_target().only(np.arange(12))
    assert "there are 3 people, and to attack 3; at least 4 of each are needed" in str(divide(few).missing[0])
    assert "there are 0 people" in str(divide(learned_target(people=None)).missing[0])


def test_the_budget_bounds_both_sides_by_whole_people() -> None:
    division = divide(learned_target(budget=Budget(pictures=9)))
    for codes in (division.public.people, division.victims.people):
        assert np.unique(codes, return_counts=True)[1].tolist() == [2] * 5
    codes = np.array([3, 1, 1, 2, 3, 3])
    assert some_people(codes, 6, Randomness.from_seed(0)).tolist() == list(range(6))
    assert len(some_people(codes, 1, Randomness.from_seed(0))) in (1, 2, 3)
    with pytest.raises(ConfigError, match="batches of at least 2"):
        Budget(batch=1)


def test_large_pictures_are_made_smaller() -> None:
    wide = HeldPictures(torch.zeros(4, 3, 512, 256))
    assert attack_size(learned_target(wide)) == (256, 128)
    assert attack_size(learned_target()) == (16, 12)
    assert pixels(HeldPictures(torch.full((1, 3, 8, 8), 0.5)), (4, 4)).unique().tolist() == [128]


def test_gates_replace_pairs_and_protector_too() -> None:
    images, _ = drawn()
    pairs = Pairs(HeldPictures(images[:8]), HeldPictures(1 - images[:8]), 1000 + np.arange(8))
    trial = Trial.of(learned_target(pairs=pairs, protector=lambda images, draw: 1 - images, budget=BUDGET))
    assert trial is not None
    assert torch.equal(stack(trial.clean.pairs.protected), images[:8])
    noise = stack(trial.noise.pairs.protected)
    assert abs(np.corrcoef(noise.flatten(), images[:8].flatten())[0, 1]) < 0.1
    assert torch.equal(trial.clean.protector(images[:2], 3), images[:2])
    draws = [trial.noise.protector(images[:4], draw) for draw in (0, 1, 0)]
    assert torch.equal(draws[0], draws[2])
    assert abs(np.corrcoef(draws[0].flatten(), draws[1].flatten())[0, 1]) < 0.1
    assert torch.equal(trial.noise.protector(images[1:2], 0)[0], draws[0][1])
