"""Mouth corners and lids of a drawn face are moved to those of a photograph, and nothing else is."""

from __future__ import annotations

import numpy as np

from tests.methods.faces.test_blending import landmarks, noisy
from veilkit.methods.faces.blending import eye_distance
from veilkit.methods.faces.expression import expressed

FACE = noisy(128, (0.7, 0.5, 0.4), 0)


def width(points: np.ndarray) -> float:
    return float(np.hypot(*(points[54] - points[48]))) / eye_distance(points)


def test_a_smile_widens_the_mouth_and_leaves_nose_and_jaw() -> None:
    drawn, smiling = landmarks(128), landmarks(60) + 7  # of another size and elsewhere
    smiling[48] -= (1.5, 0.5)
    smiling[54] += (1.5, -0.5)
    made, points = expressed(FACE, drawn, smiling)
    assert abs(width(points) - width(smiling)) < 0.04 < width(smiling) - width(drawn)
    still = [*range(0, 17, 2), 27, 30, 33]
    assert np.abs(points[still] - drawn[still]).max() < 0.5
    assert points[48, 1] < drawn[48, 1]
    assert made.shape == FACE.shape
    assert not np.allclose(made[80:100, 40:90], FACE[80:100, 40:90], atol=1e-3)
    np.testing.assert_allclose(made[:10], FACE[:10], atol=1e-3)


def test_eyes_are_opened_as_far_as_in_the_photograph() -> None:
    drawn, wide = landmarks(128), landmarks(128)
    for upper, lower in ((37, 41), (38, 40), (43, 47), (44, 46)):
        wide[upper, 1] -= 0.5
        wide[lower, 1] += 0.5
    _, points = expressed(FACE, drawn, wide)
    gap = [float(at[41, 1] - at[37, 1]) for at in (drawn, points, wide)]
    assert gap[0] + 0.6 < gap[1] < gap[2] + 0.3


def test_the_same_expression_changes_nothing_to_speak_of() -> None:
    drawn = landmarks(128)
    made, points = expressed(FACE, drawn, landmarks(300))
    np.testing.assert_allclose(points, drawn, atol=1e-6)
    np.testing.assert_allclose(made, FACE, atol=1e-4)
