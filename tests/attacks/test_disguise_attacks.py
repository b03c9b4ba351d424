"""Attacks on swapped identities against protections that are known to leak, or not to."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from tests.attacks.learners import COLOURS, JUDGE, drawn, learned_target, noise_like
from tests.attacks.targets import Blind
from veilkit.attacks import Budget, run_gated
from veilkit.attacks.farthest_match import FarthestMatch
from veilkit.attacks.learned.embedding_inversion import (
    DRAWS,
    EmbeddingInversion,
    IdentityInversion,
    InversionConfig,
    train_inverter,
)
from veilkit.attacks.learned.learning import Learning
from veilkit.attacks.person_search import AttributePath, Linkage
from veilkit.errors import ConfigError
from veilkit.types import Evidence


def values(evidence: Evidence) -> dict[str, float]:
    return {score.metric: score.value for score in evidence.scores}


def test_who_is_pushed_away_is_found_by_the_farthest_match_alone() -> None:
    """A negative is the antipode to a judge of means about grey: nobody is near, everybody is farthest."""
    images = drawn()[0]
    pushed = learned_target(1 - images)
    near, far = run_gated(Linkage, pushed), run_gated(FarthestMatch, pushed)
    assert (near.invalid, far.invalid) == ((), ())
    assert values(near)["rank-1"] < 0.1
    assert values(far)["rank-1"] == values(run_gated(Linkage, learned_target(images)))["rank-1"] > 0.5
    assert "centred rank-1" in values(far)


def test_noise_is_far_from_nobody_in_particular() -> None:
    far = run_gated(FarthestMatch, learned_target(noise_like(drawn()[0])))
    assert far.invalid == ()
    headline = far.scores[0]
    assert headline.low is not None
    assert headline.high is not None
    assert headline.low <= far.details["chance"]["rank-1"] <= headline.high


def test_an_inverter_learns_any_turn_of_embeddings_but_nothing_from_noise() -> None:
    """Unit vectors and what an orthogonal matrix makes of them: to be undone for people whom it never saw."""
    rng = np.random.default_rng(0)
    truth = rng.normal(size=(600, 8)).astype(np.float32)
    turn, _ = np.linalg.qr(rng.normal(size=(8, 8)))
    people = np.arange(600)
    budget, config = Budget(updates=600, pictures=600, batch=32), InversionConfig((64,), 100, Learning(3e-3, 0.1))

    def cosine(seen: np.ndarray) -> float:
        learned = train_inverter(seen[:500].astype(np.float32), truth[:500], people[:500], budget, config)
        guess, unit = learned.invert(seen[500:].astype(np.float32)), truth[500:]
        return float(np.mean((guess * unit).sum(1) / np.linalg.norm(guess, axis=1) / np.linalg.norm(unit, axis=1)))

    assert cosine(truth @ turn) > 0.95
    assert abs(cosine(rng.normal(size=(600, 8)))) < 0.2


def test_negatives_are_inverted_and_noise_is_not() -> None:
    images = drawn()[0]
    budget = Budget(updates=400, pictures=200, batch=8)

    def run(release: torch.Tensor) -> Evidence:
        attack = EmbeddingInversion(InversionConfig((64,), 1000, Learning(3e-3, 0.2)))
        return attack.run(learned_target(release, recogniser=COLOURS, budget=budget))

    found, lost = run(1 - images), run(noise_like(images))
    assert found.details["people on both sides"] == 0
    assert values(found)["rank-1"] > 5 * found.details["chance"]["rank-1"]
    assert values(found)["rank-1"] > values(lost)["rank-1"] + 0.1
    assert {"TPR at FPR 0.01", "TPR at FPR 0.001"} <= set(values(found))
    assert found.details["chance"]["TPR at FPR 0.01"] == 0.01


def test_the_epochs_of_the_paper_bound_the_budget() -> None:
    attack = EmbeddingInversion(InversionConfig((8,), 3))
    evidence = attack.run(learned_target(budget=Budget(updates=10_000, pictures=200, batch=8)))
    assert evidence.details["updates"] == 3 * (24 // 8)
    with pytest.raises(ConfigError, match="positive"):
        InversionConfig((), 3)


def test_what_is_left_beside_the_identity_is_found_however_the_release_looks() -> None:
    images = drawn()[0]
    leak = learned_target(noise_like(images), neutral=lambda some: 0.5 + 0.5 * (some - 0.5))
    tight = learned_target(images, neutral=torch.zeros_like)
    assert values(run_gated(AttributePath, leak))["rank-1"] > 0.5
    assert values(run_gated(AttributePath, leak))["among themselves rank-1"] > 0.5
    found = run_gated(AttributePath, tight)
    assert values(found)["rank-1"] < 0.2
    assert found.invalid == ()
    assert JUDGE.name == found.details["recogniser"]


def test_who_has_stolen_the_model_sees_with_its_eyes_and_makes_lessons_of_its_own() -> None:
    """Negatives, which a judge who is blind cannot invert; the stolen expert can, and asks for more of them."""
    images, asked = drawn()[0], set()

    def again(some: torch.Tensor, draw: int) -> torch.Tensor:
        asked.add(draw)
        return 1 - some

    attacked = learned_target(
        1 - images, recogniser=Blind(), identity=COLOURS, protector=again,
        budget=Budget(updates=400, pictures=200, batch=8),
    )  # fmt: skip
    config = InversionConfig((64,), 1000, Learning(3e-3, 0.2))
    blind, stolen = EmbeddingInversion(config).run(attacked), IdentityInversion(config).run(attacked)
    assert values(blind)["rank-1"] < 3 * blind.details["chance"]["rank-1"]
    assert values(stolen)["rank-1"] > 5 * stolen.details["chance"]["rank-1"]
    assert asked == set(range(DRAWS))
    assert stolen.details["recogniser"] == COLOURS.name
