"""Alignment against least squares, OpenCV's warp and dlib's own chips."""

from __future__ import annotations

import cv2
import numpy as np
import pytest
import torch

from tests.experts.faces_of_nobody import drawn, landmarks
from veilkit.errors import DataError
from veilkit.experts.alignment import ARCFACE, CHIP, CHIP_BY_EYES, Template, inverse, moved, similarity, warp


def least_squares(points: np.ndarray, places: np.ndarray) -> np.ndarray:
    """(2, 3) by a general solver: x' = a x - b y + c, y' = b x + a y + d."""
    x, y = points.T
    one, zero = np.ones_like(x), np.zeros_like(x)
    rows = np.concatenate([np.stack([x, -y, one, zero], 1), np.stack([y, x, zero, one], 1)])
    a, b, c, d = np.linalg.lstsq(rows, places.T.ravel(), rcond=None)[0]
    return np.array([[a, -b, c], [b, a, d]])


def test_the_similarity_is_the_one_of_least_squares() -> None:
    generator = np.random.default_rng(0)
    points, places = generator.normal(50, 20, (4, 5, 2)), generator.normal(60, 30, (5, 2))
    found = similarity(torch.from_numpy(points), torch.from_numpy(places))
    for each, matrix in zip(points, found.numpy(), strict=True):
        assert np.allclose(matrix, least_squares(each, places), atol=1e-9)


def test_an_exact_similarity_is_found_and_undone() -> None:
    points = torch.tensor([[[0.0, 0.0], [4.0, 1.0], [2.0, 7.0]]])
    truth = torch.tensor([[[0.6, -0.8, 3.0], [0.8, 0.6, -1.0]]])
    matrix = similarity(points, moved(points, truth))
    assert torch.allclose(matrix, truth, atol=1e-6)
    assert torch.allclose(moved(moved(points, matrix), inverse(matrix)), points, atol=1e-5)


def test_a_warp_is_opencvs() -> None:
    generator = np.random.default_rng(1)
    image = cv2.GaussianBlur(generator.random((40, 50, 3)).astype(np.float32), (0, 0), 2)
    matrix = np.array([[1.1, -0.3, 4.0], [0.3, 1.1, -5.0]])
    # OpenCV counts from the middle of the first pixel: shift both sides by a half.
    half = np.array([0.5, 0.5])
    shifted = np.column_stack([matrix[:, :2], matrix[:, :2] @ half + matrix[:, 2] - half])
    wanted = cv2.warpAffine(image, shifted, (48, 44), flags=cv2.INTER_LINEAR)
    tensor = torch.from_numpy(image).permute(2, 0, 1)[None]
    found = warp(tensor, torch.from_numpy(matrix).float()[None], (44, 48))[0].permute(1, 2, 0).numpy()
    assert np.abs(found - wanted).max() < 0.02  # OpenCV takes steps of 1/32 of a pixel


def test_what_shrinks_is_averaged() -> None:
    checkers = ((torch.arange(64)[:, None] + torch.arange(64)) % 2).float().expand(1, 3, 64, 64)
    small = warp(checkers, torch.tensor([[[0.25, 0.0, 0.0], [0.0, 0.25, 0.0]]]), (16, 16))
    assert torch.allclose(small, torch.full_like(small, 0.5), atol=1e-5)


def test_batch_mates_and_gradients() -> None:
    images = torch.rand(3, 3, 40, 40, generator=torch.Generator().manual_seed(0), requires_grad=True)
    points = (
        torch.rand(3, 5, 2, generator=torch.Generator().manual_seed(1))
        * 40
        * torch.tensor([1, 0.1, 3])[:, None, None]
    )
    points.requires_grad_(True)
    together = ARCFACE.align(images, points)
    alone = torch.cat([ARCFACE.align(images[i : i + 1], points[i : i + 1]) for i in range(3)])
    assert torch.allclose(together, alone, atol=1e-6)
    together.square().sum().backward()
    assert images.grad is not None
    assert images.grad.abs().sum() > 0
    assert points.grad is not None
    assert points.grad.abs().sum() > 0


@pytest.mark.parametrize("template", [ARCFACE, CHIP, CHIP_BY_EYES])
def test_a_face_comes_to_lie_on_its_template(template: Template) -> None:
    _, truths = drawn()
    marks = landmarks(truths)
    aligned = moved(template.chosen(marks), template.matrix(marks))
    distance = (aligned - torch.tensor(template.points)).norm(dim=-1)
    assert distance.max() < 0.12 * template.side
    assert template.align(torch.rand(3, 3, 192, 192), marks, 64).shape == (3, 3, 64, 64)


def test_points_of_another_count_are_refused() -> None:
    with pytest.raises(DataError, match="68, 2"):
        ARCFACE.matrix(torch.zeros(1, 6, 2))


def test_a_chip_is_dlibs() -> None:
    dlib = pytest.importorskip("dlib", reason="the extra faces is not installed")
    size = 300
    x, y = np.meshgrid(np.arange(size, dtype=np.float32), np.arange(size, dtype=np.float32))
    generator = np.random.default_rng(0)
    turn = np.array([[np.cos(0.2), -np.sin(0.2)], [np.sin(0.2), np.cos(0.2)]])
    points = np.round((np.array(CHIP.points) - 75) @ turn.T + 150 + generator.normal(0, 2, (5, 2))).astype(int)
    found = dlib.full_object_detection(dlib.rectangle(0, 0, size, size), [dlib.point(*p) for p in points.tolist()])
    # Pictures of their own coordinates tell where dlib takes each pixel from.
    taken = np.stack([dlib.get_face_chip(np.ascontiguousarray(each), found, 150, 0.25) for each in (x, y)], -1)
    column, row = np.meshgrid(np.arange(150), np.arange(150))
    places = torch.from_numpy(np.stack([column, row], -1).reshape(1, -1, 2) + 0.5)
    ours = moved(places, inverse(CHIP.matrix(torch.from_numpy(points[None] + 0.5))))[0].numpy() - 0.5
    assert np.abs(ours - taken.reshape(-1, 2)).max() < 0.05
