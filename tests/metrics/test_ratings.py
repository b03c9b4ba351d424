"""Kappas and d' against worked examples of the literature and against other implementations."""

from __future__ import annotations

from statistics import NormalDist

import numpy as np
import pytest
from sklearn.metrics import cohen_kappa_score

from veilkit.errors import DataError
from veilkit.metrics import category_counts, cohen_kappa, fleiss_kappa, free_marginal_kappa, sensitivity

# Fourteen raters, ten subjects, five categories; the usual worked example of Fleiss' kappa.
WORKED = np.array(
    [
        [0, 0, 0, 0, 14], [0, 2, 6, 4, 2], [0, 0, 3, 5, 6], [0, 3, 9, 2, 0], [2, 2, 8, 1, 1],
        [7, 7, 0, 0, 0], [3, 2, 6, 3, 0], [2, 5, 3, 2, 2], [6, 5, 2, 1, 0], [0, 2, 2, 3, 7],
    ]
)  # fmt: skip


def test_fleiss_worked_example() -> None:
    # By hand: the sums are 20, 28, 39, 21, 32 of 140, so chance is 4170 / 19600 = 0.2128; pairs that agree are
    # 1.000, .253, .308, .440, .330, .462, .242, .176, .286, .286 of all, in the mean 0.378.
    assert 20**2 + 28**2 + 39**2 + 21**2 + 32**2 == 4170
    assert fleiss_kappa(WORKED) == pytest.approx((0.3780 - 0.2128) / (1 - 0.2128), abs=2e-4)
    assert fleiss_kappa(WORKED) == pytest.approx(0.210, abs=5e-4)


def test_free_marginal_takes_chance_from_the_number_of_categories() -> None:
    assert free_marginal_kappa(WORKED) == pytest.approx((0.3780 - 0.2) / 0.8, abs=2e-4)


def test_cohen_worked_examples() -> None:
    # 20 and 15 of 50 agree: 0.7; chance 0.5 * 0.6 + 0.5 * 0.4 = 0.5.
    assert cohen_kappa([1] * 25 + [0] * 25, [1] * 20 + [0] * 5 + [1] * 10 + [0] * 15) == pytest.approx(0.4)
    # The same share of agreement, 60 %, with other margins: 0.1304 and 0.2593.
    first = [1] * 60 + [0] * 40
    assert cohen_kappa(first, [1] * 45 + [0] * 15 + [1] * 25 + [0] * 15) == pytest.approx(0.1304, abs=5e-5)
    assert cohen_kappa(first, [1] * 25 + [0] * 35 + [1] * 5 + [0] * 35) == pytest.approx(0.2593, abs=5e-5)


@pytest.mark.parametrize("seed", range(5))
def test_cohen_against_scikit_learn(seed: int) -> None:
    random = np.random.default_rng(seed)
    first = random.integers(0, 3, 40)
    second = np.where(random.random(40) < 0.5, first, random.integers(0, 3, 40))
    assert cohen_kappa(first, second) == pytest.approx(cohen_kappa_score(first, second))


@pytest.mark.parametrize("kappa", [fleiss_kappa, free_marginal_kappa])
def test_raters_who_answer_by_chance_agree_by_chance(kappa) -> None:
    ratings = np.random.default_rng(1).integers(0, 4, (4000, 3))
    assert kappa(category_counts(ratings, 4)) == pytest.approx(0, abs=0.03)


def test_one_answer_to_everything_leaves_kappa_undefined() -> None:
    assert cohen_kappa([1, 1, 1], [1, 1, 1]) is None
    assert fleiss_kappa(np.array([[3, 0], [3, 0]])) is None
    assert free_marginal_kappa(np.array([[3, 0], [3, 0]])) == 1.0


def test_what_is_no_table_of_ratings_is_refused() -> None:
    with pytest.raises(DataError, match="same 2 or more raters"):
        fleiss_kappa(np.array([[2, 1], [1, 1]]))
    with pytest.raises(DataError, match="same 2 or more raters"):
        free_marginal_kappa(np.array([[1, 0], [0, 1]]))
    with pytest.raises(DataError, match="from 0 to 1"):
        category_counts(np.array([[0, 2]]), 2)
    with pytest.raises(DataError, match="at least one item"):
        cohen_kappa(np.zeros(0, dtype=int), np.zeros(0, dtype=int))


def test_sensitivity_worked_example() -> None:
    # 16.5 / 21 = 0.7857 and 4.5 / 21 = 0.2143 lie symmetrically: z = 0.7916 on both sides.
    found = sensitivity(16, 20, 4, 20)
    assert found.d_prime == pytest.approx(2 * 0.7916, abs=1e-4)
    assert found.criterion == pytest.approx(0, abs=1e-12)


def test_sensitivity_against_the_standard_library() -> None:
    z = NormalDist().inv_cdf
    found = sensitivity([18, 3], [20, 20], [9, 3], [25, 25])
    for place, (hits, alarms) in enumerate(((18, 9), (3, 3))):
        hit, alarm = z((hits + 0.5) / 21), z((alarms + 0.5) / 26)
        assert found.d_prime[place] == pytest.approx(hit - alarm)
        assert found.criterion[place] == pytest.approx(-(hit + alarm) / 2)


def test_always_right_is_finite_and_always_yes_is_zero() -> None:
    assert np.isfinite(sensitivity(20, 20, 0, 20).d_prime)
    always_yes = sensitivity(20, 20, 20, 20)
    assert always_yes.d_prime == pytest.approx(0)
    assert always_yes.criterion < -1


def test_more_hits_than_pairs_are_refused() -> None:
    with pytest.raises(DataError, match="hits must lie between 0 and same"):
        sensitivity(21, 20, 0, 20)
