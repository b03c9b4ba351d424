"""Attacks in closed form find what nobody sees, and count paired choices as the textbook does."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from tests.attacks.learners import AUTHORISED, JUDGE, drawn, learned_target, people
from veilkit.attacks import ATTACKS, AttackTarget, run_gated
from veilkit.attacks.quick.choices import PAIRED, own_original_scores, same_person_score
from veilkit.types import Evidence


def found(name: str, release: torch.Tensor, **changes: object) -> Evidence:
    evidence = run_gated(ATTACKS[name], learned_target(release, budget=None, **changes))  # type: ignore[arg-type]
    assert evidence.invalid == ()
    return evidence


def surely_right(evidence: Evidence) -> bool:
    score = evidence.scores[0]
    return score.metric == PAIRED and score.low is not None and score.low > 0.5


def keeps_features(seed: int = 0) -> torch.Tensor:
    """Noise whose mean colours in the authorised expert's cells are the originals': what else is seen is random."""
    images = drawn()[0]
    cells = AUTHORISED.embed(images).reshape(len(images), 3, 8, 6) + 0.5
    noise = torch.rand(images.shape, generator=torch.Generator().manual_seed(seed)) - 0.5
    blocks = noise.reshape(len(images), 3, 8, 2, 6, 2)
    noise = (blocks - blocks.mean(dim=(3, 5), keepdim=True)).reshape(images.shape)
    return cells.repeat_interleave(2, 2).repeat_interleave(2, 3) + 0.2 * noise


def test_the_decoder_reads_originals_from_features_that_a_release_keeps() -> None:
    assert surely_right(found("linear_decoder", keeps_features()))
    scrambled = torch.rand(drawn()[0].shape, generator=torch.Generator().manual_seed(1))
    score = found("linear_decoder", scrambled).scores[0]
    assert score.low is not None
    assert score.high is not None
    assert score.low <= 0.5 <= score.high


def test_the_regression_undoes_a_secret_that_is_the_same_for_all_pictures() -> None:
    images = drawn()[0]
    order = torch.randperm(images[0].numel(), generator=torch.Generator().manual_seed(2))
    release = (1 - images).flatten(1)[:, order].reshape(images.shape)
    assert surely_right(found("linear_recovery", release))
    assert found("linear_recovery", release).scores[0].value > found("colour_layout", release).scores[0].value


def test_colours_alone_find_the_original_of_a_mosaic() -> None:
    images = drawn()[0]
    mosaic = torch.nn.functional.avg_pool2d(images, 4).repeat_interleave(4, 2).repeat_interleave(4, 3)
    scores = found("colour_layout", mosaic).scores
    assert scores[0].value > 0.9
    assert scores[1].metric == "rank-1"


def test_discriminants_see_past_what_differs_between_pictures_of_one_person() -> None:
    """A strong gradient of random direction on every picture: who learned it is not misled as the judge is."""
    images = drawn()[0]
    random = torch.Generator().manual_seed(3)
    rows = torch.linspace(-1, 1, images.shape[2])[None, None, :, None]
    release = (images * 0.5 + 0.25 + 0.25 * rows * torch.randn(len(images), 1, 1, 1, generator=random)).clamp(0, 1)
    attacked = learned_target(release)
    assert attacked.protected is not None
    features = attacked.protected.features(JUDGE)
    learned = found("discriminant", release)
    assert surely_right(learned)
    assert learned.scores[0].value > same_person_score(attacked, features, features).value


def test_the_stolen_expert_finds_who_its_user_finds() -> None:
    assert surely_right(found("stolen_expert", keeps_features()))


@pytest.mark.parametrize("name", ["linear_recovery", "linear_decoder", "discriminant"])
def test_who_teaches_is_never_scored(name: str) -> None:
    details = found(name, drawn()[0]).details
    assert details["people on both sides"] == 0
    assert details["learned from"] == "half of the people in the release, whose originals are known"


def test_paired_choices_equal_the_textbook_loop() -> None:
    random = np.random.default_rng(4)
    truth = random.normal(size=(len(people()), 5)).astype(np.float32)
    guess = (truth + 2 * random.normal(size=truth.shape)).astype(np.float32)
    attacked: AttackTarget = learned_target()
    (own, _), _ = own_original_scores(attacked, guess, truth)
    same = same_person_score(attacked, guess, truth)
    likeness = (guess / np.linalg.norm(guess, axis=1)[:, None]) @ (truth / np.linalg.norm(truth, axis=1)[:, None]).T
    owns, sames = [], []
    for i, person in enumerate(people()):
        wrong = [likeness[i, j] for j in range(len(truth)) if people()[j] != person]
        right = [likeness[i, j] for j in range(len(truth)) if people()[j] == person and j != i]
        owns.append(np.mean([likeness[i, i] > each for each in wrong]))
        sames.append(np.mean([r > w for r in right for w in wrong]))
    assert own.value == pytest.approx(np.mean(owns))
    assert same.value == pytest.approx(np.mean(sames))
