from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import binom, binomtest

from veilkit.errors import ConfigError, DataError
from veilkit.metrics import (
    Interval,
    bootstrap_interval,
    bootstrap_means,
    clopper_pearson,
    crossed_weights,
    paired_difference,
    percentile_interval,
)


def people(rng: np.random.Generator, count: int = 60) -> tuple[np.ndarray, np.ndarray]:
    """Values that are alike within a person, and unequal numbers of queries."""
    identities = np.repeat(np.arange(count) * 3 + 5, rng.integers(1, 8, count))
    centres = rng.normal(size=3 * count + 5)
    return centres[identities] + 0.1 * rng.normal(size=len(identities)), identities


def test_equals_a_loop_that_collects_the_queries_of_each_person_drawn():
    values, identities = people(np.random.default_rng(0))
    found = bootstrap_means(values[None], identities, generator=np.random.default_rng(1), draws=5000)[0]
    rng, names, loop = np.random.default_rng(2), np.unique(identities), []
    for _ in range(5000):
        drawn = rng.choice(names, len(names))
        loop.append(np.concatenate([values[identities == name] for name in drawn]).mean())
    assert found.mean() == pytest.approx(np.mean(loop), abs=4 * np.std(loop) / np.sqrt(2500))
    assert found.std() == pytest.approx(np.std(loop), rel=0.06)
    np.testing.assert_allclose(np.quantile(found, [0.025, 0.975]), np.quantile(loop, [0.025, 0.975]), atol=0.04)


def test_interval_covers_the_truth_about_as_often_as_promised():
    rng, covered = np.random.default_rng(3), 0
    for _ in range(200):
        values, identities = people(rng)
        interval = bootstrap_interval(values, identities, generator=rng)
        assert interval.low <= interval.value <= interval.high
        covered += interval.low <= 0.0 <= interval.high
    assert binomtest(covered, 200, 0.95).pvalue > 1e-3


def test_an_interval_over_people_is_wider_than_one_over_images():
    values, identities = people(np.random.default_rng(4))
    by_person = bootstrap_interval(values, identities, generator=np.random.default_rng(0))
    by_image = bootstrap_interval(values, np.arange(len(values)), generator=np.random.default_rng(0))
    assert by_person.high - by_person.low > 1.5 * (by_image.high - by_image.low)


def test_draws_are_shared_and_seeded():
    values, identities = people(np.random.default_rng(5))
    both = bootstrap_means(np.stack([values, 2 * values + 1]), identities, generator=np.random.default_rng(6))
    np.testing.assert_allclose(both[1], 2 * both[0] + 1)
    again = bootstrap_means(values[None], identities, generator=np.random.default_rng(6))
    np.testing.assert_allclose(again[0], both[0])
    order = np.random.default_rng(7).permutation(len(values))
    shuffled = bootstrap_means(values[None, order], identities[order], generator=np.random.default_rng(6))
    np.testing.assert_allclose(shuffled[0], both[0])


def test_a_paired_difference_sees_what_two_intervals_cannot():
    rng = np.random.default_rng(8)
    values, identities = people(rng)
    better = values + 0.05 + 0.05 * rng.normal(size=len(values))
    difference = paired_difference(better, values, identities, generator=np.random.default_rng(0))
    assert difference.value == pytest.approx(better.mean() - values.mean())
    assert 0.0 < difference.low < 0.05 < difference.high < 0.1
    alone = [bootstrap_interval(v, identities, generator=np.random.default_rng(0)) for v in (better, values)]
    assert alone[0].low < alone[1].high
    nothing = paired_difference(values, values, identities, generator=np.random.default_rng(0))
    assert nothing == Interval(0.0, 0.0, 0.0, 0.95)


@given(trials=st.integers(1, 3000), share=st.floats(0, 1), confidence=st.sampled_from([0.8, 0.95, 0.999]))
@settings(max_examples=200, deadline=None, derandomize=True)
def test_clopper_pearson_is_that_of_scipy(trials, share, confidence):
    successes = round(share * trials)
    found = clopper_pearson(successes, trials, confidence=confidence)
    expected = binomtest(successes, trials).proportion_ci(confidence, method="exact")
    assert found.value == successes / trials
    assert found.low == pytest.approx(expected.low, abs=1e-9)
    assert found.high == pytest.approx(expected.high, abs=1e-9)


@pytest.mark.parametrize("rate", [0.001, 0.03, 0.5, 0.97])
def test_clopper_pearson_covers_at_least_as_often_as_promised(rate):
    trials = 120
    intervals = [clopper_pearson(k, trials, confidence=0.9) for k in range(trials + 1)]
    covering = [k for k, interval in enumerate(intervals) if interval.low <= rate <= interval.high]
    assert binom.pmf(covering, trials, rate).sum() >= 0.9


def _weighted_means(values: np.ndarray, weights: np.ndarray) -> np.ndarray:
    return (weights @ values) / weights.sum(axis=1)


def _table(participants: int, people: int) -> tuple[np.ndarray, np.ndarray]:
    return np.repeat(np.arange(participants), people), np.tile(np.arange(people), participants)


def test_participants_who_all_answer_alike_leave_the_bootstrap_of_people() -> None:
    answers = np.random.default_rng(0).integers(0, 2, 30).astype(float)
    participant, person = _table(6, 30)
    crossed = _weighted_means(
        np.tile(answers, 6), crossed_weights(participant, person, generator=np.random.default_rng(1))
    )
    plain = bootstrap_means(answers[None], np.arange(30), generator=np.random.default_rng(2))[0]
    assert crossed.mean() == pytest.approx(answers.mean(), abs=0.02)
    assert crossed.std() == pytest.approx(plain.std(), rel=0.1)


def test_with_one_participant_only_people_are_drawn() -> None:
    answers = np.random.default_rng(3).integers(0, 2, 40).astype(float)
    weights = crossed_weights(np.zeros(40, dtype=int), np.arange(40), generator=np.random.default_rng(4))
    plain = bootstrap_means(answers[None], np.arange(40), generator=np.random.default_rng(5))[0]
    assert _weighted_means(answers, weights).std() == pytest.approx(plain.std(), rel=0.1)


def test_the_interval_covers_the_truth_where_participants_and_people_both_vary() -> None:
    random = np.random.default_rng(6)
    participant, person = _table(12, 20)
    crossed = alone = 0
    for _ in range(120):
        skill, ease = random.normal(0, 1, 12), random.normal(0, 1, 20)
        values = skill[participant] + ease[person] + random.normal(0, 1, 240)
        draws = _weighted_means(values, crossed_weights(participant, person, generator=random))
        interval = percentile_interval(float(values.mean()), draws)
        crossed += interval.low <= 0 <= interval.high
        half = 1.96 * values.std() / 240**0.5  # answers taken for independent
        alone += abs(values.mean()) <= half
    assert crossed / 120 > 0.88
    assert alone / 120 < 0.7  # the mistake that the crossed bootstrap is there for


def test_bad_input_is_explained():
    values, identities = people(np.random.default_rng(9))
    rng = np.random.default_rng(0)
    with pytest.raises(ConfigError, match="at least 1000"):
        bootstrap_interval(values, identities, generator=rng, draws=999)
    with pytest.raises(ConfigError, match="confidence"):
        bootstrap_interval(values, identities, generator=rng, confidence=95)
    with pytest.raises(DataError, match="at least 2 of them"):
        bootstrap_interval(values, np.zeros_like(identities), generator=rng)
    with pytest.raises(DataError, match="leave such items out"):
        bootstrap_interval(np.where(values > 0, np.nan, values), identities, generator=rng)
    with pytest.raises(DataError, match="same queries"):
        paired_difference(values, values[1:], identities, generator=rng)
    with pytest.raises(DataError, match="kinds, queries"):
        bootstrap_means(values, identities, generator=rng)
    for successes, trials in ((-1, 3), (4, 3), (0, 0)):
        with pytest.raises(DataError, match="successes"):
            clopper_pearson(successes, trials)
    with pytest.raises(ConfigError, match="at least 1000"):
        crossed_weights([0, 1], [0, 1], generator=rng, draws=10)
    with pytest.raises(DataError, match="second must have shape"):
        crossed_weights([0, 1], [0], generator=rng)
    with pytest.raises(DataError, match="at least one answer"):
        crossed_weights([], [], generator=rng)
