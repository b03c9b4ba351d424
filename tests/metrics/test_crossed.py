from __future__ import annotations

import numpy as np
import pytest

from veilkit.errors import ConfigError, DataError
from veilkit.metrics import bootstrap_means, crossed_weights, percentile_interval


def _means(values: np.ndarray, weights: np.ndarray) -> np.ndarray:
    return (weights @ values) / weights.sum(axis=1)


def _table(participants: int, people: int) -> tuple[np.ndarray, np.ndarray]:
    return np.repeat(np.arange(participants), people), np.tile(np.arange(people), participants)


def test_participants_who_all_answer_alike_leave_the_bootstrap_of_people() -> None:
    answers = np.random.default_rng(0).integers(0, 2, 30).astype(float)
    participant, person = _table(6, 30)
    crossed = _means(np.tile(answers, 6), crossed_weights(participant, person, generator=np.random.default_rng(1)))
    plain = bootstrap_means(answers[None], np.arange(30), generator=np.random.default_rng(2))[0]
    assert crossed.mean() == pytest.approx(answers.mean(), abs=0.02)
    assert crossed.std() == pytest.approx(plain.std(), rel=0.1)


def test_with_one_participant_only_people_are_drawn() -> None:
    answers = np.random.default_rng(3).integers(0, 2, 40).astype(float)
    weights = crossed_weights(np.zeros(40, dtype=int), np.arange(40), generator=np.random.default_rng(4))
    plain = bootstrap_means(answers[None], np.arange(40), generator=np.random.default_rng(5))[0]
    assert _means(answers, weights).std() == pytest.approx(plain.std(), rel=0.1)


def test_the_interval_covers_the_truth_where_participants_and_people_both_vary() -> None:
    random = np.random.default_rng(6)
    participant, person = _table(12, 20)
    crossed = alone = 0
    for _ in range(120):
        skill, ease = random.normal(0, 1, 12), random.normal(0, 1, 20)
        values = skill[participant] + ease[person] + random.normal(0, 1, 240)
        draws = _means(values, crossed_weights(participant, person, generator=random))
        interval = percentile_interval(float(values.mean()), draws)
        crossed += interval.low <= 0 <= interval.high
        half = 1.96 * values.std() / 240**0.5  # answers taken for independent
        alone += abs(values.mean()) <= half
    assert crossed / 120 > 0.88
    assert alone / 120 < 0.7  # the mistake that the crossed bootstrap is there for


def test_bad_input_is_refused() -> None:
    random = np.random.default_rng(0)
    with pytest.raises(ConfigError, match="at least 1000"):
        crossed_weights([0, 1], [0, 1], generator=random, draws=10)
    with pytest.raises(DataError, match="second must have shape"):
        crossed_weights([0, 1], [0], generator=random)
    with pytest.raises(DataError, match="at least one answer"):
        crossed_weights([], [], generator=random)
