"""Alignment against least squares, OpenCV's warp and dlib's own chips."""

from __future__ import annotations

import cv2
import numpy as np
import pytest
import torch

from tests.experts.faces_of_nobody import drawn, landmarks
from veilkit.errors import DataError
from veilkit.experts.alignment import (
    ARCFACE,
    CHIP,
    CHIP_BY_EYES,
    WIDE,
    Template,
    inverse,
    moved,
    similarity,
    view,
    warp,
)


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


def ramp(height: int, width: int) -> torch.Tensor:
    """(3, H, W): red is x, green is y, blue their sum, at the middles of pixels, in [0, 1]."""
    y, x = torch.meshgrid(torch.arange(height) + 0.5, torch.arange(width) + 0.5, indexing="ij")
    return torch.stack([x / width, y / height, (x + y) / (width + height)])


def test_arcfaces_crop_is_that_of_its_published_points_by_opencv() -> None:
    """Its recipe: least squares to the points as printed, then warpAffine, both from the first pixel's middle on."""
    printed = np.array(
        [[38.2946, 51.6963], [73.5318, 51.5014], [56.0252, 71.7366], [41.5493, 92.3655], [70.7299, 92.2041]]
    )
    image = np.ascontiguousarray(ramp(200, 220).permute(1, 2, 0).numpy())
    turn = 0.9 * np.array([[np.cos(0.3), -np.sin(0.3)], [np.sin(0.3), np.cos(0.3)]])
    points = printed @ turn.T + np.array([70, 40]) + np.random.default_rng(2).normal(0, 1, (5, 2))
    wanted = cv2.warpAffine(image, least_squares(points, printed), (112, 112), flags=cv2.INTER_LINEAR)
    # What is a whole number there is the middle of a pixel here.
    found = ARCFACE.align(torch.from_numpy(image).permute(2, 0, 1)[None], torch.from_numpy(points[None] + 0.5))
    difference = np.abs(found[0].permute(1, 2, 0).numpy() - wanted)
    assert difference.max() < 0.2 / 200  # half a pixel of the crop is twice as much


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


def test_beyond_the_picture_is_black_or_its_border() -> None:
    image, shift = ramp(8, 8)[None], torch.tensor([[[1.0, 0.0, 4.0], [0.0, 1.0, 0.0]]])
    assert (warp(image, shift, (8, 8))[0, 0, :, :4] == 0).all()
    repeated = warp(image, shift, (8, 8), beyond="border")[0, 0]
    torch.testing.assert_close(repeated[:, :4], image[0, 0, :, :1].expand(8, 4))
    torch.testing.assert_close(repeated[:, 4:], image[0, 0, :, :4])


def test_a_crop_and_its_way_back_give_the_picture_again() -> None:
    image, matrix = ramp(64, 64)[None], torch.tensor([[[0.9, -0.2, 4.0], [0.2, 0.9, -3.0]]])
    again = warp(warp(image, matrix, (60, 60)), inverse(matrix), (64, 64))
    torch.testing.assert_close(again[..., 24:40, 24:40], image[..., 24:40, 24:40], atol=0.01, rtol=0)


def test_a_wide_crop_shows_each_expert_what_it_would_have_cut_itself() -> None:
    """Of any points: what the view takes from the wide crop is where the expert's own template puts it."""
    corners = torch.tensor(CHIP.points) @ torch.tensor([[0.9, 0.3], [-0.3, 0.9]]) + torch.tensor([40.0, 20.0])
    five = torch.tensor(ARCFACE.points) @ torch.tensor([[0.9, -0.3], [0.3, 0.9]]) + torch.tensor([40.0, 20.0])
    noise = torch.randn(2, 5, 2, generator=torch.Generator().manual_seed(0))
    image = ramp(240, 240)[None]
    for order, name, template, points in (
        ("dlib-5", "dlib", CHIP, corners + noise[0]),
        ("five", "arcface", ARCFACE, five + noise[1]),
    ):
        shown = view(WIDE[order].align(image, points[None], 400), name)
        own = template.align(image, points[None], shown.shape[2])
        inside = (own > 0).all(1) & (shown > 0).all(1)
        assert inside.float().mean() > 0.8
        assert ((shown - own).abs().amax(1)[inside] < 2e-3).float().mean() > 0.98  # but for the picture's edges


def test_misfit_is_the_distance_that_least_squares_leave() -> None:
    template = WIDE["five"]
    places = np.array(template.points)
    points = places * 1.7 + np.random.default_rng(3).normal(0, 4, (5, 2))
    matrix = least_squares(points, places)
    left = points @ matrix[:, :2].T + matrix[:, 2] - places
    wanted = np.sqrt((left**2).sum(1).mean()) / template.side
    assert float(template.misfit(torch.from_numpy(points[None]))) == pytest.approx(wanted, rel=1e-6)
    assert float(template.misfit(torch.from_numpy(places[None] * 3 + 5))) == pytest.approx(0, abs=1e-9)


@pytest.mark.parametrize("template", [ARCFACE, CHIP])
def test_points_in_one_place_have_no_alignment(template: Template) -> None:
    assert not template.matrix(torch.full((1, 5, 2), 7.0)).isfinite().all()


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
