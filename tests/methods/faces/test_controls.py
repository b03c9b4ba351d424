"""Blurred and replaced faces."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from scipy.ndimage import gaussian_filter1d

from tests.experts.faces_of_nobody import drawn
from tests.methods.disguises import KnownFaces, group_picture
from veilkit.errors import ConfigError, UnknownNameError
from veilkit.methods.faces.controls import FaceBlur, FaceBlurConfig, FaceReplace, drawn_face
from veilkit.methods.faces.method import MISSED
from veilkit.rng import Randomness
from veilkit.types import ImageBatch

RNG = Randomness.from_seed(0)


def protected(method: FaceBlur | FaceReplace, image: torch.Tensor, item: str = "a") -> torch.Tensor:
    images = method.protect(ImageBatch(image[None], (item,)), rng=RNG).images
    assert images is not None
    return images[0]


def test_only_faces_are_blurred_and_as_scipy_does_it() -> None:
    image, boxes, points = group_picture()
    made = protected(FaceBlur(finder=KnownFaces(boxes[:1], points[:1])), image)
    left, top, right, bottom = boxes[0]
    x, y = 0.1 * (right - left), 0.1 * (bottom - top)
    rows = slice(max(0, int(np.floor(top - y))), int(np.ceil(bottom + y)))
    columns = slice(max(0, int(np.floor(left - x))), int(np.ceil(right + x)))
    sigma = 0.15 * (bottom - top)
    expected, radius = image[:, rows, columns].double().numpy(), round(3 * sigma)
    for axis in (1, 2):
        expected = gaussian_filter1d(expected, sigma, axis, mode="nearest", radius=radius)
    np.testing.assert_allclose(made[:, rows, columns], expected, atol=1e-4)
    outside = torch.ones(image.shape[1:], dtype=torch.bool)
    outside[rows, columns] = False
    assert torch.equal(made[:, outside], image[:, outside])


def test_the_head_of_a_person_crop() -> None:
    image = torch.rand(3, 128, 64, generator=torch.Generator().manual_seed(0))
    made = protected(FaceBlur.configured("people"), image)
    assert torch.equal(made[:, 40:], image[:, 40:])
    assert made[:, 4:24, 20:44].std() < 0.5 * image[:, 4:24, 20:44].std()


def test_another_face_for_each_picture_and_key_over_the_whole_old_one() -> None:
    image, boxes, points = group_picture()
    method = FaceReplace(finder=KnownFaces(boxes[:1], points[:1]))
    one, other = protected(method, image, "a"), protected(method, image, "b")
    assert torch.equal(one, protected(method, image, "a"))
    left, top, right, bottom = (round(value) for value in boxes[0])
    inside = (slice(None), slice(top, bottom), slice(left, right))
    assert (one[inside] - other[inside]).abs().mean() > 0.02
    # Whoever was there: with another face below, the middle of the box shows the same.
    inverted = protected(method, 1 - image, "a")
    y, x = np.mgrid[0 : image.shape[1], 0 : image.shape[2]] + 0.5
    radius = np.hypot((2 * x - left - right) / (right - left), (2 * y - top - bottom) / (bottom - top))
    face = torch.from_numpy(radius < 0.95)
    torch.testing.assert_close(one[:, face], inverted[:, face])


def test_drawn_faces_have_their_box_inside() -> None:
    for seed in range(3):
        face, (left, top, right, bottom) = drawn_face(Randomness.from_seed(seed))
        assert face.shape[0] == 3
        assert face.shape[1] == face.shape[2]
        assert -1 <= left < right <= face.shape[2] + 1
        assert -1 <= top < bottom <= face.shape[1] + 1


def test_the_strongest_blur_of_a_huge_face_does_not_end_the_run() -> None:
    image = torch.rand(3, 4, 4, generator=torch.Generator().manual_seed(0))
    method = FaceBlur(FaceBlurConfig(strength=10.0), finder=KnownFaces([(0.0, 0.0, 4.0, 1100.0)]))
    made = protected(method, image)
    assert torch.isfinite(made).all()
    assert not torch.equal(made, image)


def test_another_finder_is_taken_where_it_is_set() -> None:
    first = FaceBlur.configured("people")
    assert first.finder.name == "head"
    second = first.reconfigured(settings={"finder": "whole"})
    assert second.finder.name == "whole"
    assert second.fingerprint() != first.fingerprint()


def test_faces_of_a_picture_are_found_without_any_setting() -> None:
    image, truths = drawn(1)[0][0], drawn(1)[1]
    left, top, right, bottom = (round(value) for value in truths[0].box)
    for method in (FaceBlur(), FaceReplace()):
        method.check()
        made = protected(method, image)
        assert method.finder.name == "centerface"
        assert (made - image)[
            :, (top + bottom) // 2 - 20 : (top + bottom) // 2 + 20, left + 20 : right - 20
        ].abs().mean() > 0.01
        assert torch.equal(made[:, :3, :3], image[:, :3, :3])


def test_missing_finders_and_missed_faces_are_told() -> None:
    with pytest.raises(UnknownNameError, match="face finder"):
        FaceBlur(FaceBlurConfig(finder="nobody")).check()
    with pytest.raises(ConfigError, match="strength must be between"):
        FaceBlurConfig(strength=0.0)
    image, boxes, points = group_picture()
    method = FaceBlur(finder=KnownFaces(boxes[:2], points[:2]), second=KnownFaces(boxes))
    reports = method.protect(ImageBatch(image[None], ("a",)), rng=RNG).reports
    assert reports is not None
    assert reports[0].notes == (MISSED,)
    assert [face["outcome"] for face in reports[0].details["faces"]] == ["blurred", "blurred", MISSED]
