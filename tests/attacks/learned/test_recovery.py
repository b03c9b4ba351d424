from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from tests.attacks.learners import BRIEF, BUDGET, JUDGE, SMALL, Thumbnail, drawn, learned_target, noise_like, people
from veilkit.attacks import Budget, run_gated
from veilkit.attacks.learned.learning import Learning, unfinished
from veilkit.attacks.learned.recovery import Recoverer, Recovery, RecoveryConfig, RecoveryWithFeatures
from veilkit.attacks.people_split import divide
from veilkit.attacks.pictures import HeldPictures
from veilkit.errors import ConfigError
from veilkit.training.fitting import Fitted


def mapped(images: torch.Tensor) -> torch.Tensor:
    """A fixed map of each pixel that can be undone: colours exchanged and turned into their negatives."""
    return 1 - images[:, [2, 0, 1]]


def values(evidence) -> dict[str, float]:
    return {score.metric: score.value for score in evidence.scores}


def test_it_undoes_a_fixed_map_far_better_than_the_mean_image() -> None:
    evidence = Recovery(SMALL).run(learned_target(mapped(drawn()[0])))
    found, mean = values(evidence), evidence.details["mean image"]
    assert found["PSNR"] > mean["PSNR"] + 4
    assert found["SSIM"] > mean["SSIM"] + 0.2
    assert found["rank-1"] > 0.85
    assert evidence.details["as released"]["rank-1"] < 0.5
    assert evidence.details["public people"] == 12


def test_independent_noise_gives_it_the_mean_image_and_nobody() -> None:
    evidence = Recovery(SMALL).run(learned_target(noise_like(drawn()[0]), budget=BRIEF))
    assert abs(values(evidence)["PSNR"] - evidence.details["mean image"]["PSNR"]) < 0.6
    assert values(evidence)["rank-1"] <= 4 / 24


def test_only_other_peoples_pairs_are_learned_from() -> None:
    """The victims' release is another one: what is learned must not change with it."""
    images = drawn()[0]
    target = learned_target(mapped(images), budget=Budget(updates=3, pictures=200, batch=8))
    victims = np.isin(people(), np.unique(divide(target).victims.people))
    other = mapped(images).clone()
    other[torch.from_numpy(victims)] = 0.5
    weights = []
    for release in (target.protected, HeldPictures(other)):
        division = divide(replace(target, protected=release))
        learner = Recoverer(division, target.budget, SMALL, None)
        learner.learn(None, "recovery")
        weights.append(learner.network.state_dict())
    assert all(torch.equal(weights[0][name], weights[1][name]) for name in weights[0])


def test_what_a_surrogate_sees_in_noise_is_used() -> None:
    images, noise = drawn()[0], noise_like(drawn()[0])
    noise = (noise * 255).round() / 255
    known = {noise[i].numpy().tobytes(): i for i in range(len(images))}

    class Seer(Thumbnail):
        def embed(self, shown: torch.Tensor) -> torch.Tensor:
            return super().embed(images[[known[each.numpy().tobytes()] for each in shown]])

    attack = RecoveryWithFeatures(SMALL, Seer("seer", (2, 1)))
    evidence = attack.run(learned_target(noise))
    assert values(evidence)["rank-1"] > 0.2  # in noise alone, at most 0.17 in the test before
    assert evidence.details["surrogate"] == "seer"
    assert RecoveryWithFeatures().surrogate(learned_target()) is JUDGE


def test_trainings_are_kept_and_found_again(tmp_path: Path) -> None:
    target = learned_target(budget=Budget(updates=4, pictures=200, batch=8), work=tmp_path)
    first = run_gated(lambda: Recovery(SMALL), target)
    files = {file.name: file.stat().st_mtime_ns for file in tmp_path.iterdir()}
    assert len(files) == 2  # the release is the originals themselves: the gate on them is the same training
    again = run_gated(lambda: Recovery(SMALL), target)
    assert again == first
    assert {file.name: file.stat().st_mtime_ns for file in tmp_path.iterdir()} == files


def test_an_attacker_who_hardly_learned_is_invalid() -> None:
    target = learned_target(mapped(drawn()[0]), budget=Budget(updates=20, pictures=200, batch=8))
    slow = RecoveryConfig(8, 2, Learning(rate=1e-5, watched=0.2))
    evidence = run_gated(lambda: Recovery(slow), target)
    assert any("is possible" in str(reason) for reason in evidence.invalid)


def test_a_falling_loss_is_no_excuse_for_what_was_found() -> None:
    falling = Fitted(np.zeros(50), np.linspace(1, 0.1, 50), early=False)
    assert "still falling" in unfinished(falling, 0.3, 0.9)[0].text
    assert unfinished(falling, 0.95, 0.9) == ()
    assert "still falling" in unfinished(falling, 0.95, None)[0].text
    by_heart = Fitted(np.linspace(1, 0, 50), np.r_[np.linspace(1, 0.5, 10), np.linspace(0.5, 0.9, 41)], early=False)
    assert unfinished(by_heart, 0.0, 0.9) == ()


def test_early_stopping_spends_less() -> None:
    config = RecoveryConfig(8, 1, Learning(rate=3e-2, watched=0.2, early=True))
    target = learned_target(noise_like(drawn()[0]), budget=replace(BUDGET, updates=100))
    evidence = Recovery(config).run(target)
    assert evidence.details["stopped early"]
    assert evidence.details["updates"] < 100


def test_without_a_budget_or_enough_people_it_does_not_apply() -> None:
    assert "no budget given" in run_gated(Recovery, learned_target(budget=None)).why_missing
    few = run_gated(Recovery, learned_target().only(np.arange(8)))
    assert not few.applicable
    assert "to learn from there are 2 people" in few.why_missing
    with pytest.raises(ConfigError, match="watched"):
        Learning(watched=0.0)
