from __future__ import annotations

import numpy as np
import pytest

from studies.disguise.utility import expression_agreement, gaze_errors, landmark_errors
from veilkit.errors import DataError


def test_a_shift_by_a_tenth_of_the_eyes_distance_is_ten_percent() -> None:
    truth = np.random.default_rng(0).normal(size=(4, 68, 2))
    truth[:, 36], truth[:, 45] = [0.0, 0.0], [3.0, 4.0]  # five apart
    found = truth + np.array([0.3, -0.4])
    for error in landmark_errors(found, truth).values():
        assert error == pytest.approx(10)
    moved = truth.copy()
    moved[:, 60] += [0.5, 0]  # one of twenty points of the mouth
    errors = landmark_errors(moved, truth)
    assert errors["mouth"] == pytest.approx(0.5)
    assert errors["all"] == pytest.approx(10 / 68)
    assert not errors["eyes"].any()
    assert not errors["nose"].any()


def test_five_points_have_parts_too() -> None:
    truth = np.array([[[0, 0], [10, 0], [5, 5], [2, 9], [8, 9]]], dtype=float)
    found = truth.copy()
    found[0, 2] += [0, 1]
    assert {part: float(error[0]) for part, error in landmark_errors(found, truth).items()} == pytest.approx(
        {"all": 2, "eyes": 0, "nose": 10, "mouth": 0}
    )


def test_angles_and_agreement() -> None:
    assert gaze_errors(np.array([[0, 30], [90, 0], [7, 7]]), np.array([[0, -30], [0, 90], [7, 7]])) == pytest.approx(
        [60, 90, 0], abs=1e-5
    )
    scores = np.array([[0.1, 0.9], [0.6, 0.4]])
    assert expression_agreement(scores, scores[:, ::-1]).tolist() == [0, 0]
    assert expression_agreement(scores, 2 * scores).tolist() == [1, 1]


def test_what_does_not_fit_is_refused() -> None:
    with pytest.raises(DataError, match="68 or 5"):
        landmark_errors(np.zeros((1, 7, 2)), np.zeros((1, 7, 2)))
    with pytest.raises(DataError, match="one place"):
        landmark_errors(np.zeros((1, 5, 2)), np.zeros((1, 5, 2)))
    with pytest.raises(DataError, match="yaw and pitch"):
        gaze_errors(np.zeros((1, 3)), np.zeros((1, 3)))
    with pytest.raises(DataError, match="classes"):
        expression_agreement(np.zeros((1, 3)), np.zeros((1, 2)))
