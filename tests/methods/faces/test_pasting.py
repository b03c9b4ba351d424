"""Pasting a crop back: nothing outside of the mask is touched, colours are matched, hidden is hidden."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from veilkit.experts.alignment import WIDE, inverse, warp
from veilkit.media.writing import to_pixels
from veilkit.methods.faces.pasting import colour_matched, feather, hidden, paste, pixelated


def picture(height: int = 90, width: int = 120) -> torch.Tensor:
    pixels = torch.randint(0, 256, (3, height, width), generator=torch.Generator().manual_seed(0))
    return pixels.float() / 255


def turned(size: int, scale: float, angle: float, x: float, y: float) -> torch.Tensor:
    """(2, 3), from the picture to a crop that lies in it scaled, turned and moved so."""
    cos, sin = scale * np.cos(angle), scale * np.sin(angle)
    return inverse(torch.tensor([[cos, -sin, x], [sin, cos, y]], dtype=torch.float64))


@pytest.mark.parametrize(("scale", "angle", "x", "y"), [(0.8, 0.3, 30, 10), (2.0, -0.5, -10, 20), (0.3, 0, 60, 60)])
def test_pixels_outside_of_the_mask_are_untouched_byte_for_byte(
    scale: float, angle: float, x: float, y: float
) -> None:
    image, mask = picture(), feather(48)
    matrix = turned(48, scale, angle, x, y)
    result = paste(image, torch.ones(3, 48, 48), matrix, mask)
    # Where a point of the picture is in the crop, by the matrix alone, and whether that is in the ellipse.
    v, u = np.mgrid[0:90, 0:120] + 0.5
    at = (np.stack([u, v], -1) @ matrix[:, :2].numpy().T + matrix[:, 2].numpy()) / 48
    radius = np.hypot((at[..., 0] - 0.5) / 0.42, (at[..., 1] - 0.53) / 0.45)
    outside, middle = radius > 1.15 + 0.1 / scale, radius < 0.5
    before, after = to_pixels(image), to_pixels(result)
    assert outside.any()
    assert middle.any()
    assert (before[outside] == after[outside]).all()
    assert (after[middle] == 255).all()
    assert torch.equal(image, picture())


def test_a_face_partly_or_wholly_outside_of_the_picture() -> None:
    image = picture()
    partly = paste(image, torch.ones(3, 48, 48), turned(48, 1.0, 0, -20, -20), feather(48))
    assert partly.shape == image.shape
    assert not torch.equal(partly, image)
    assert torch.equal(paste(image, torch.ones(3, 48, 48), turned(48, 1.0, 0, 500, 500), feather(48)), image)


def test_a_crop_that_was_not_changed_comes_back_nearly_as_it_was() -> None:
    smooth = torch.nn.functional.interpolate(picture(9, 12)[None], (90, 120), mode="bicubic").clamp(0, 1)[0]
    matrix = turned(64, 0.9, 0.2, 30, 15)
    again = paste(smooth, warp(smooth[None], matrix[None], (64, 64))[0], matrix, feather(64))
    assert (again - smooth).abs().mean() < 0.005


def test_the_mask_is_one_over_the_face_and_zero_at_the_edges() -> None:
    mask = feather(64)
    assert mask[0].max() == mask[-1].max() == mask[:, 0].max() == mask[:, -1].max() == 0
    template = WIDE["five"]
    for x, y in template.points:
        assert mask[int(y * 64 / template.side), int(x * 64 / template.side)] == 1
    assert ((mask >= 0) & (mask <= 1)).all()


def test_colours_are_matched_under_the_mask() -> None:
    made, wanted, mask = 0.4 + 0.1 * picture(64, 64), 0.3 + 0.15 * picture(64, 64).flip(2), feather(64)
    matched = colour_matched(made, wanted, mask)
    weight = (mask / mask.sum()).double().numpy().ravel()
    for ours, theirs in zip(matched, wanted, strict=True):
        for each in (ours, theirs):
            assert 0 <= each.min() <= each.max() <= 1
        a, b = ours.double().numpy().ravel(), theirs.double().numpy().ravel()
        mean_a, mean_b = np.average(a, weights=weight), np.average(b, weights=weight)
        assert mean_a == pytest.approx(mean_b, abs=1e-4)
        spreads = [np.average((x - m) ** 2, weights=weight) ** 0.5 for x, m in ((a, mean_a), (b, mean_b))]
        assert spreads[0] == pytest.approx(spreads[1], rel=1e-3)


def test_hidden_boxes_are_solid_or_coarse_and_wider_than_told() -> None:
    image = picture()
    black = hidden(image.clone(), (40, 30, 60, 50), "mask")
    assert (black[:, 28:52, 38:62] == 0).all()
    assert torch.equal(black[:, :26], image[:, :26])
    cells = hidden(image.clone(), (40, 30, 60, 50), "pixelate")
    assert len({tuple(colour) for colour in cells[:, 27:53, 37:63].flatten(1).T.tolist()}) <= 16
    assert torch.equal(hidden(image.clone(), (200, 200, 220, 220), "mask"), image)


@pytest.mark.parametrize(("height", "width"), [(90, 120), (1, 1), (7, 300)])
def test_pixelation_leaves_few_colours_and_keeps_the_mean(height: int, width: int) -> None:
    image = picture(height, width)
    cells = pixelated(image, 8)
    assert cells.shape == image.shape
    side = -(-min(height, width) // 8)
    assert len(set(map(tuple, cells.flatten(1).T.tolist()))) <= (-(-height // side)) * (-(-width // side))
    torch.testing.assert_close(cells.mean(), image.mean(), atol=0.02, rtol=0)
