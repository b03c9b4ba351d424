"""Naming people by features: against sklearn, closed forms and cases that are known."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.neighbors import KNeighborsClassifier

from veilkit.attacks.identify import nearest_centroid, nearest_neighbour, softmax
from veilkit.errors import DataError


def clouds(people: int = 5, shots: int = 8, spread: float = 0.3) -> tuple[np.ndarray, np.ndarray]:
    random = np.random.default_rng(0)
    centres = random.normal(size=(people, 6))
    codes = np.repeat(np.arange(people) * 3 + 7, shots)  # codes need not count from 0
    return (centres.repeat(shots, axis=0) + spread * random.normal(size=(people * shots, 6))).astype(
        np.float32
    ), codes


def test_the_nearest_neighbour_is_sklearns() -> None:
    vectors, people = clouds(spread=1.0)
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
    vectors, people = clouds()
    known, asked = slice(0, None, 2), slice(1, None, 2)
    found = softmax(vectors[known], people[known], vectors[asked], strengths=(1.0, 100.0))
    scaled = softmax(1000 * vectors[known] + 50, people[known], 1000 * vectors[asked] + 50, strengths=(1.0, 100.0))
    for strength, each in found.items():
        assert each.converged
        assert (each.named == people[asked]).mean() > 0.9
        assert (each.named == scaled[strength].named).all()


def test_what_has_not_converged_says_so_and_more_iterations_help() -> None:
    vectors, people = clouds(spread=1.0)
    short = softmax(vectors, people, vectors, strengths=(100.0,), at_most=3)[100.0]
    assert (short.converged, short.iterations) == (False, 3)
    assert softmax(vectors, people, vectors, strengths=(100.0,))[100.0].converged


def test_the_limit_is_raised_until_it_is_not_needed(monkeypatch: pytest.MonkeyPatch) -> None:
    """In parts of few iterations it reaches the same answer as at once: the problem is convex."""
    vectors, people = clouds(spread=1.0)
    at_once = softmax(vectors, people, vectors, strengths=(10.0,))[10.0]
    monkeypatch.setattr("veilkit.attacks.identify._AT_FIRST", 5)
    in_parts = softmax(vectors, people, vectors, strengths=(10.0,))[10.0]
    assert in_parts.converged
    assert in_parts.iterations > 5
    assert (at_once.named == in_parts.named).all()


def test_one_person_cannot_be_told_from_anybody() -> None:
    with pytest.raises(DataError, match="at least 2"):
        softmax(np.ones((3, 2), dtype=np.float32), np.zeros(3, dtype=np.int64), np.ones((1, 2), dtype=np.float32))
