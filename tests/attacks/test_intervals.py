from __future__ import annotations

import numpy as np
import pytest

from veilkit.attacks.intervals import mean_score, retrieval_scores
from veilkit.metrics import clopper_pearson, retrieval
from veilkit.rng import Randomness
from veilkit.types import Role

RNG = Randomness.from_seed(0)


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
