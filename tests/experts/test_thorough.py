"""A thorough finder: turned faces, faces cut off by an edge, and shapes that no detector stands."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from tests.experts.faces_of_nobody import SIDE, drawn
from tests.methods.disguises import KnownFaces
from veilkit.experts.dlib_faces import DlibDetector
from veilkit.experts.finders import load_finder, load_second
from veilkit.experts.thorough import Part, ThoroughFinder, surest_turn, turned, turned_back


@pytest.mark.parametrize("quarters", [0, 1, 2, 3])
def test_a_box_in_a_turned_picture_is_brought_back(quarters: int) -> None:
    image = torch.zeros(1, 30, 50)
    image[0, 4:11, 20:45] = 1
    rows, columns = image[0].rot90(quarters).nonzero(as_tuple=True)
    box = np.array([[columns.min(), rows.min(), columns.max() + 1, rows.max() + 1]], np.float32)
    pixels = np.repeat(image.mul(255).byte().permute(1, 2, 0).numpy(), 3, 2)
    shown, matrix = turned(pixels, -90 * quarters, 1.0)
    np.testing.assert_array_equal(shown[..., 0] > 0, image[0].rot90(quarters) > 0)
    np.testing.assert_allclose(turned_back(box, matrix), [[20, 4, 45, 11]], atol=1e-4)


@pytest.mark.parametrize("degrees", [30, 45, 135, 225, 315])
@pytest.mark.parametrize("scale", [0.5, 1.0, 2.0])
def test_what_is_seen_in_a_turned_picture_lies_where_it_was(degrees: int, scale: float) -> None:
    pixels = np.zeros((60, 100, 3), np.uint8)
    pixels[20:30, 60:70] = 255
    shown, matrix = turned(pixels, degrees, scale)
    y, x = np.nonzero(shown[..., 0] > 127)
    middle = np.array([x.mean() + 0.5, y.mean() + 0.5])
    box = np.concatenate([middle - 8 * scale, middle + 8 * scale])[None].astype(np.float32)
    left, top, right, bottom = turned_back(box, matrix)[0]
    np.testing.assert_allclose([(left + right) / 2, (top + bottom) / 2], [65, 25], atol=0.4 if scale > 0.5 else 0.9)
    np.testing.assert_allclose([right - left, bottom - top], 16, atol=1e-3)


def test_of_one_place_the_surest_turn_is_kept() -> None:
    boxes = torch.tensor([[0.0, 0.0, 40.0, 40.0], [0.0, 20.0, 40.0, 60.0], [100.0, 0.0, 140.0, 40.0]])
    scores, turns = torch.tensor([0.9, 0.6, 0.4]), torch.tensor([0, 2, 2])
    assert surest_turn(boxes, scores, turns, 0.5).tolist() == [True, False, True]
    assert surest_turn(boxes, scores, torch.zeros(3), 0.5).tolist() == [True, True, True]
    assert surest_turn(boxes, scores, turns, 0.95).tolist() == [True, True, True]


@pytest.mark.parametrize("quarters", [1, 2, 3])
def test_dlib_finds_faces_that_lie_on_their_side_or_stand_on_their_head(quarters: int) -> None:
    pytest.importorskip("dlib", reason="the extra faces is not installed")
    image, truths = drawn(1)
    second = load_second("dlib", "dlib")
    assert isinstance(second, ThoroughFinder)
    (found,) = second.detect(image.rot90(quarters, (2, 3)).contiguous())
    x, y = truths[0].five[2]
    there = {1: (y, SIDE - x), 2: (SIDE - x, SIDE - y), 3: (SIDE - y, x)}[quarters]
    inside = [b for b in found.boxes.tolist() if b[0] < there[0] < b[2] and b[1] < there[1] < b[3]]
    assert inside
    assert float(found.scores.max()) >= second.certain


def test_half_a_face_at_the_edge_is_found_in_the_mirrored_picture() -> None:
    pytest.importorskip("dlib", reason="the extra faces is not installed")
    image, truths = drawn(1)
    middle = round(float(truths[0].five[2, 0]))
    half = image[:, :, :, :middle].contiguous()
    assert len(load_finder("dlib").detect(half)[0].boxes) == 0
    second = load_second("dlib", "dlib")
    assert second is not None
    (found,) = second.detect(half)
    nose = float(truths[0].five[2, 1])
    assert any(b[2] == middle and b[1] < nose < b[3] for b in found.boxes.tolist())
    again = second.detect(half)[0]
    assert torch.equal(found.boxes, again.boxes)


@pytest.mark.parametrize("size", [(1, 49_000), (200_000, 2), (7, 7), (9, 200_000)])
def test_extreme_shapes_never_reach_dlib(size: tuple[int, int], monkeypatch: pytest.MonkeyPatch) -> None:
    def reached(self: DlibDetector) -> None:
        raise AssertionError("dlib was asked")

    monkeypatch.setattr(DlibDetector, "_parts", reached)
    image = torch.rand(1, 3, *size, generator=torch.Generator().manual_seed(0))
    assert DlibDetector(5).detect(image)[0].boxes.shape == (0, 4)
    assert ThoroughFinder(Part(DlibDetector(5), 0.5)).detect(image)[0].boxes.shape == (0, 4)


def test_huge_pictures_are_searched_shrunk_and_boxes_lie_where_the_face_is(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("dlib", reason="the extra faces is not installed")
    image, truths = drawn(1)
    monkeypatch.setattr("veilkit.experts.dlib_faces._MOST_PIXELS", SIDE * SIDE)
    large = torch.nn.functional.interpolate(image, scale_factor=3, mode="bilinear")
    (found,) = DlibDetector(5).detect(large)
    x, y = 3 * truths[0].five[2]
    left, top, right, bottom = found.boxes[0].tolist()
    assert left < x < right
    assert top < y < bottom
    assert left < float(found.points[0, 4, 0]) < right


def test_fixed_finders_need_no_second_look() -> None:
    assert load_second("auto", "whole") is None
    assert load_second("auto", "head") is None
    assert load_second("none", "dlib") is None
    assert load_second("whole", "dlib") is not None


def test_a_thorough_finder_is_known_by_how_it_asks() -> None:
    truth = KnownFaces([])
    one, other = ThoroughFinder(Part(truth, 0.5)), ThoroughFinder(Part(truth, 0.6))
    assert one.info.name == "truth-thorough"
    assert len({truth.info.fingerprint, one.info.fingerprint, other.info.fingerprint}) == 3
