"""Closed-set identification: its classifiers, parts and accuracies, and its gates on features and on pictures."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.neighbors import KNeighborsClassifier

from tests.attacks.targets import Blind, noise, target
from veilkit.attacks import AttackTarget, Budget, run_gated
from veilkit.attacks.identify import (
    Identification,
    divide_pictures,
    identify,
    nearest_centroid,
    nearest_neighbour,
    person_shares,
    softmax,
)
from veilkit.attacks.intervals import mean_score, retrieval_scores
from veilkit.attacks.pictures import HeldPictures
from veilkit.attacks.search import plan_search
from veilkit.errors import DataError
from veilkit.metrics import clopper_pearson, retrieval
from veilkit.rng import Randomness
from veilkit.types import Role


def some_people(people: int = 5, shots: int = 8, spread: float = 0.3) -> tuple[np.ndarray, np.ndarray]:
    random = np.random.default_rng(0)
    centres = random.normal(size=(people, 6))
    codes = np.repeat(np.arange(people) * 3 + 7, shots)  # codes need not count from 0
    return (centres.repeat(shots, axis=0) + spread * random.normal(size=(people * shots, 6))).astype(
        np.float32
    ), codes


def test_the_nearest_neighbour_is_sklearns() -> None:
    vectors, people = some_people(spread=1.0)
    known, asked = slice(0, None, 2), slice(1, None, 2)
    theirs = KNeighborsClassifier(1, metric="cosine").fit(vectors[known], people[known]).predict(vectors[asked])
    assert (nearest_neighbour(vectors[known], people[known], vectors[asked]) == theirs).all()
    assert (nearest_neighbour(vectors[known], people[known], 5 * vectors[asked]) == theirs).all()  # direction alone


def test_a_centroid_outvotes_a_stray_neighbour() -> None:
    known = np.array([[1, 0.1], [1, -0.1], [1, 0.0], [0, 1], [0.1, 1], [1, 0.3]], dtype=np.float32)
    people = np.array([4, 4, 4, 9, 9, 9])
    asked = np.array([[1, 0.25]], dtype=np.float32)
    assert nearest_neighbour(known, people, asked).tolist() == [9]
    assert nearest_centroid(known, people, asked).tolist() == [4]


def test_the_softmax_converges_whatever_the_scale() -> None:
    vectors, people = some_people()
    known, asked = slice(0, None, 2), slice(1, None, 2)
    found = softmax(vectors[known], people[known], vectors[asked], strengths=(1.0, 100.0))
    scaled = softmax(1000 * vectors[known] + 50, people[known], 1000 * vectors[asked] + 50, strengths=(1.0, 100.0))
    for strength, each in found.items():
        assert each.converged
        assert (each.named == people[asked]).mean() > 0.9
        assert (each.named == scaled[strength].named).all()


def test_what_has_not_converged_says_so_and_more_iterations_help() -> None:
    vectors, people = some_people(spread=1.0)
    short = softmax(vectors, people, vectors, strengths=(100.0,), at_most=3)[100.0]
    assert (short.converged, short.iterations) == (False, 3)
    assert softmax(vectors, people, vectors, strengths=(100.0,))[100.0].converged


def test_the_limit_is_raised_until_it_is_not_needed(monkeypatch: pytest.MonkeyPatch) -> None:
    """In parts of few iterations it reaches the same answer as at once: the problem is convex."""
    vectors, people = some_people(spread=1.0)
    at_once = softmax(vectors, people, vectors, strengths=(10.0,))[10.0]
    monkeypatch.setattr("veilkit.attacks.identify._AT_FIRST", 5)
    in_parts = softmax(vectors, people, vectors, strengths=(10.0,))[10.0]
    assert in_parts.converged
    assert in_parts.iterations > 5
    assert (at_once.named == in_parts.named).all()


def test_one_person_cannot_be_told_from_anybody() -> None:
    with pytest.raises(DataError, match="at least 2"):
        softmax(np.ones((3, 2), dtype=np.float32), np.zeros(3, dtype=np.int64), np.ones((1, 2), dtype=np.float32))


RNG = Randomness.from_seed(0)


def clouds(people: int = 30, shots: int = 8, spread: float = 0.5, seed: int = 0) -> np.ndarray:
    random = np.random.default_rng(seed)
    centres = random.normal(size=(people, 16)).repeat(shots, axis=0)
    return (centres + spread * random.normal(size=centres.shape)).astype(np.float32)


def feature_target(features: np.ndarray, clean: np.ndarray | None, shots: int = 8, **changes: object) -> AttackTarget:
    """A release of features; its pictures are there for the gates to count, and are all the same."""
    import torch

    people = np.arange(len(features)) // shots
    search, _ = plan_search([str(code) for code in people], [None] * len(people), *[range(len(people))] * 2)
    values: dict[str, object] = {
        "rng": RNG, "features": features, "clean_features": clean, "people": people, "search": search,
        "originals": HeldPictures(torch.full((len(people), 3, 4, 4), 0.5)), "budget": Budget(pictures=10_000),
    }  # fmt: skip
    return AttackTarget(**{**values, **changes})  # type: ignore[arg-type]


def test_parts_share_people_and_no_pictures() -> None:
    people = np.array([5] * 10 + [2] * 3 + [8] * 2 + [1] * 7)  # person 8 has too few
    parts = divide_pictures(people, RNG)
    everything = np.concatenate([parts.train, parts.validation, parts.test])
    assert sorted(everything.tolist()) == sorted(np.flatnonzero(people != 8).tolist())
    for part in (parts.train, parts.validation, parts.test):
        assert set(people[part]) == {1, 2, 5}
    assert [int((people[part] == 5).sum()) for part in (parts.train, parts.validation, parts.test)] == [5, 2, 3]
    assert len(np.intersect1d(parts.known, parts.test)) == 0


def test_shares_are_means_of_each_person() -> None:
    shares = person_shares(np.array([True, False, True, True]), np.array([9, 9, 2, 9]))
    assert shares.tolist() == pytest.approx([1.0, 2 / 3])


def test_people_are_named_where_features_tell_them_and_not_in_noise() -> None:
    people = np.arange(240) // 8
    parts = divide_pictures(people, RNG)
    clear, blind = identify(clouds(), people, parts), identify(clouds(spread=100.0), people, parts)
    assert clear.chance == pytest.approx(1 / 30)
    for name, shares in clear.shares.items():
        assert len(shares) == 30
        assert shares.mean() > 0.9
        assert blind.shares[name].mean() < 0.2
    assert clear.converged


def test_noise_scores_chance_however_uneven_the_people_are() -> None:
    """One person with most pictures must not make blind guessing look good: every person counts the same."""
    people = np.concatenate([np.zeros(300, dtype=np.int64), np.repeat(np.arange(1, 11), 6)])
    random = np.random.default_rng(1)
    found = [identify(random.normal(size=(360, 8)).astype(np.float32), people, divide_pictures(people, RNG.child(i)))
             for i in range(3)]  # fmt: skip
    for name in ("softmax", "1-NN", "centroid"):
        mean = np.mean([each.shares[name].mean() for each in found])
        assert mean == pytest.approx(1 / 11, abs=0.1)


def test_a_release_of_noise_is_a_valid_nothing_and_clean_features_are_found() -> None:
    features = clouds()
    found = run_gated(Identification, feature_target(features, features))
    assert found.invalid == ()
    assert found.scores[0].value > 0.9
    assert [score.metric for score in found.scores] == [
        "accuracy", "accuracy (softmax)", "accuracy (1-NN)", "accuracy (centroid)"
    ]  # fmt: skip
    assert "the same people" in found.scores[0].note
    nothing = run_gated(Identification, feature_target(clouds(spread=1000.0), features))
    assert nothing.invalid == ()
    assert nothing.scores[0].value < 0.2
    assert nothing.details["gates"]["on originals"] > 0.9


def test_the_first_score_is_of_the_classifier_that_validation_chose() -> None:
    features = clouds(spread=1.2)
    found = run_gated(Identification, feature_target(features, features))
    by_name = {score.metric: score.value for score in found.scores}
    assert by_name["accuracy"] == by_name[f"accuracy ({found.details['headline']})"]


def test_without_clean_features_or_where_these_tell_nothing_it_is_invalid() -> None:
    features = clouds()
    assert "not at hand" in run_gated(Identification, feature_target(features, None)).invalid[0].text
    blind = run_gated(Identification, feature_target(features, clouds(spread=1000.0)))
    assert any("not surely better than chance" in str(reason) for reason in blind.invalid)


def test_pictures_are_attacked_through_a_recogniser() -> None:
    clear = run_gated(Identification, target(budget=Budget()))
    assert clear.invalid == ()
    assert clear.scores[0].value > 0.8
    nothing = run_gated(Identification, target(noise(), budget=Budget()))
    assert nothing.invalid == ()
    assert nothing.scores[0].value < 0.4
    assert run_gated(Identification, target(noise(), recogniser=Blind(), budget=Budget())).invalid


def test_it_says_what_is_missing() -> None:
    assert "nor pictures" in run_gated(Identification, target(budget=Budget(), recogniser=None)).why_missing
    assert "no budget" in run_gated(Identification, target()).why_missing
    pairs = clouds(people=10, shots=2)
    two_each = run_gated(Identification, feature_target(pairs, pairs, shots=2))
    assert not two_each.applicable
    assert "3 pictures" in two_each.why_missing


def test_the_budget_bounds_the_pictures_in_whole_people() -> None:
    features = clouds()
    found = Identification().run(feature_target(features, features, budget=Budget(pictures=50)))
    assert found.details["people"] == 7
    assert sum(found.details["pictures"].values()) == 56


def test_no_hit_among_so_many_people_has_the_exact_upper_bound() -> None:
    """Queries whose right answer is always last: 0 % of 20 people, which is not 0 % of everybody."""
    features = np.eye(20, dtype=np.float32)
    found = retrieval(np.roll(features, 1, axis=0), features, np.arange(20), np.arange(20))
    scores = retrieval_scores(
        found, np.arange(20), role=Role.PRIVACY, higher_is_better=False, rng=RNG, chance={"rank-1": 0.05}
    )
    assert (scores[0].value, scores[0].low) == (0.0, 0.0)
    assert scores[0].high == pytest.approx(clopper_pearson(0, 20).high)
    assert scores[0].note == "chance 5.00%"


def test_people_not_pictures_are_drawn() -> None:
    """Ten copies of each person's value add nothing: the interval stays that of the people."""
    values = np.random.default_rng(0).random(30)
    once = mean_score("m", values, np.arange(30), role=Role.PRIVACY, higher_is_better=False, rng=RNG)
    often = mean_score(
        "m", values.repeat(10), np.arange(30).repeat(10), role=Role.PRIVACY, higher_is_better=False, rng=RNG
    )
    alone = mean_score("m", values.repeat(10), None, role=Role.PRIVACY, higher_is_better=False, rng=RNG)
    assert often.high - often.low == pytest.approx(once.high - once.low, rel=1e-6)
    assert alone.high - alone.low < 0.5 * (once.high - once.low)
    assert "pictures drawn" in alone.note


def test_one_person_gives_no_interval_and_says_so() -> None:
    score = mean_score("m", np.ones(4), np.zeros(4, dtype=int), role=Role.PRIVACY, higher_is_better=False, rng=RNG)
    assert score.low is None
    assert "one person only" in score.note
