"""Alignment: the similarity against numpy's least squares, warping of ramps whose values are known, round trips."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from veilkit.experts.face_alignment import INNER, TEMPLATE, inverse, misfit, similarity, view, warped


def moved(points: np.ndarray, scale: float, angle: float, shift: tuple[float, float]) -> np.ndarray:
    turn = scale * np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])
    return points @ turn.T + np.array(shift)


def ramp(height: int, width: int) -> torch.Tensor:
    """Red is x, green is y, blue their sum, at pixel centres, in [0, 1]."""
    y, x = torch.meshgrid(torch.arange(height) + 0.5, torch.arange(width) + 0.5, indexing="ij")
    return torch.stack([x / width, y / height, (x + y) / (width + height)])


def test_points_that_were_moved_come_back_to_the_template() -> None:
    points = moved(TEMPLATE * 112, 3.1, 0.7, (40, 90))
    matrix = similarity(points, 112)
    np.testing.assert_allclose(points @ matrix[:, :2].T + matrix[:, 2], TEMPLATE * 112, atol=1e-9)
    assert misfit(points, matrix, 112) == pytest.approx(0, abs=1e-12)
    np.testing.assert_allclose(moved(TEMPLATE, 1, 0, (0, 0)), TEMPLATE)


def test_the_fit_against_numpys_least_squares() -> None:
    points = moved(TEMPLATE * 112, 0.8, -0.3, (5, 9)) + np.random.default_rng(0).normal(0, 3, (5, 2))
    matrix = similarity(points, 112)
    # x' = a x - b y + s, y' = b x + a y + t, solved for (a, b, s, t).
    rows = [[x, -y, 1, 0] for x, y in points] + [[y, x, 0, 1] for x, y in points]
    goal = np.concatenate([TEMPLATE[:, 0], TEMPLATE[:, 1]]) * 112
    a, b, s, t = np.linalg.lstsq(np.array(rows), goal, rcond=None)[0]
    np.testing.assert_allclose(matrix, [[a, -b, s], [b, a, t]], atol=1e-9)
    assert 0.005 < misfit(points, matrix, 112) < 0.05


def test_the_template_holds_arcfaces_in_its_middle() -> None:
    assert TEMPLATE[:, 0].min() > 0.2
    eyes, nose, mouth = TEMPLATE[:2, 1].mean(), TEMPLATE[2, 1], TEMPLATE[3:, 1].mean()
    assert eyes < nose < mouth
    assert (TEMPLATE[0, 0] - 0.5) / INNER + 0.5 == pytest.approx(38.2946 / 112)


def test_points_in_one_place_have_no_alignment() -> None:
    assert np.isnan(similarity(np.full((5, 2), 7.0), 112)).all()


def test_warping_looks_values_up_where_the_matrix_says() -> None:
    image = ramp(60, 80)
    matrix = similarity(moved(TEMPLATE * 24, 1.2, 0.4, (25, 15)), 24)
    crop = warped(image, matrix, (24, 24))
    back = inverse(matrix)
    y, x = np.mgrid[0:24, 0:24] + 0.5
    sources = np.stack([x, y], -1) @ back[:, :2].T + back[:, 2]
    assert sources.min() > 0.5
    assert sources[..., 1].max() < 59.5
    np.testing.assert_allclose(crop[0], sources[..., 0] / 80, atol=2e-3)
    np.testing.assert_allclose(crop[1], sources[..., 1] / 60, atol=2e-3)


def test_shrinking_averages_instead_of_picking() -> None:
    fine = torch.zeros(3, 240, 240)
    fine[:, :, ::2] = 1.0  # stripes that would alias to black or white
    matrix = np.array([[0.1, 0, 0], [0, 0.1, 0]])
    shrunk = warped(fine, matrix, (24, 24))[:, 2:-2, 2:-2]
    assert (shrunk - 0.5).abs().max() < 0.1  # an odd number of stripes is averaged
    np.testing.assert_allclose(warped(ramp(240, 240), matrix, (24, 24))[0, 5], (np.arange(24) + 0.5) / 24, atol=0.02)


def test_a_crop_and_its_way_back_give_the_picture_again() -> None:
    image = ramp(64, 64)
    matrix = similarity(moved(TEMPLATE * 48, 0.9, 0.2, (8, 8)), 48)
    again = warped(warped(image, matrix, (48, 48)), inverse(matrix), (64, 64))
    np.testing.assert_allclose(again[:, 24:40, 24:40], image[:, 24:40, 24:40], atol=0.01)


def test_views_of_a_crop_let_gradients_through() -> None:
    crops = ramp(112, 112)[None].requires_grad_()
    middle = view(crops, "arcface")
    assert middle.shape == (1, 3, 84, 84)
    np.testing.assert_allclose(middle.detach()[0, 0, 10], (14.5 + np.arange(84)) / 112, atol=1e-4)
    middle.sum().backward()
    assert crops.grad is not None
    assert crops.grad[0, 0, 56, 56] > 0
    assert view(crops, "whole") is crops
    chip = view(crops, "dlib").detach()[0]  # 80 pixels of 0.71 of the side, from 0.145 and 0.255 on
    np.testing.assert_allclose(chip[0, 3], 0.145 + 0.71 * (np.arange(80) + 0.5) / 80, atol=1e-4)
    np.testing.assert_allclose(chip[1, :, 3], 0.255 + 0.71 * (np.arange(80) + 0.5) / 80, atol=1e-4)
