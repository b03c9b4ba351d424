"""dlib's detector finds generated faces, and its landmarks lie where the truth says."""

from __future__ import annotations

import pickle

import pytest
import torch

from tests.experts.faces_of_nobody import drawn, landmarks
from veilkit.errors import ConfigError, UsageError
from veilkit.experts.dlib_faces import DlibDetector, DlibLandmarks

pytest.importorskip("dlib", reason="the extra faces is not installed")


def test_faces_are_found_with_their_corners_of_the_eyes() -> None:
    images, truths = drawn()
    detector = DlibDetector(5)
    marks = landmarks(truths)
    for found, truth in zip(detector.detect(images), marks, strict=True):
        assert len(found.boxes) == 1
        left, top, right, bottom = found.boxes[0].tolist()
        x, y = truth[30].tolist()
        assert left < x < right
        assert top < y < bottom
        assert 0.5 <= float(found.scores[0]) <= 1
        between = (truth[36] - truth[45]).norm()
        corners = truth[[45, 42, 36, 39, 33]]
        assert (found.points[0] - corners).norm(dim=-1).max() < 0.2 * between
    assert detector.info.kind == "detector"


def test_sixty_eight_landmarks_and_none_where_no_face_is() -> None:
    images, truths = drawn()
    found = DlibLandmarks(68).predict(torch.cat([images[:2], torch.zeros(1, 3, 192, 192)]))
    assert found[2].isnan().all()
    marks = landmarks(truths)[:2]
    between = (marks[:, 36] - marks[:, 45]).norm(dim=-1)
    error = (found[:2] - marks).norm(dim=-1).mean(1) / between
    assert error.max() < 0.12


@pytest.mark.parametrize("size", [(1, 1), (1, 2), (3, 1)])
def test_a_picture_of_a_pixel_or_two_has_no_face(size: tuple[int, int]) -> None:
    found = DlibDetector(5).detect(torch.rand(1, 3, *size, generator=torch.Generator().manual_seed(0)))[0]
    assert found.boxes.shape == (0, 4)


def test_a_detector_that_was_used_can_be_sent_to_a_worker() -> None:
    images, _ = drawn(1)
    detector = DlibDetector(5)
    first = detector.detect(images)[0]
    again = pickle.loads(pickle.dumps(detector)).detect(images)[0]
    assert len(first.boxes) == 1
    assert torch.equal(first.points, again.points)


def test_it_judges_and_does_not_supervise() -> None:
    with pytest.raises(UsageError, match="not supervise"):
        DlibDetector(5).detect(torch.zeros(1, 3, 64, 64, requires_grad=True))
    with pytest.raises(ConfigError, match="5 or 68"):
        DlibDetector(7)  # type: ignore[arg-type]
