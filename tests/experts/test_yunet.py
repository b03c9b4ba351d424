"""YuNet's answers decoded by hand, and against OpenCV's own decoder where the weights are there."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

from tests.experts.faces_of_nobody import drawn
from veilkit.errors import CheckpointError
from veilkit.experts.weights_folder import weights_folder
from veilkit.experts.yunet import FILE, YuNet, decoded, distinct


def test_a_cell_says_where_its_face_is() -> None:
    face, there, box, points = torch.zeros(6, 1), torch.zeros(6, 1), torch.zeros(6, 4), torch.zeros(6, 10)
    face[5], there[5] = 0.81, 1.0
    box[5] = torch.tensor([0.5, 0.25, math.log(2), math.log(4)])
    points[5, :4] = torch.tensor([0.0, 0.0, 1.0, -1.0])
    found = decoded([face, there, box, points], 8, 3)  # cell 5 is in the second row, third column
    assert found.scores[5] == pytest.approx(0.9)
    assert found.boxes[5].tolist() == pytest.approx([20 - 8, 10 - 16, 20 + 8, 10 + 16])
    assert found.points[5, :2].tolist() == [[16.0, 8.0], [24.0, 0.0]]


def test_of_boxes_that_overlap_the_surest_stays() -> None:
    boxes = torch.tensor([[0.0, 0, 10, 10], [1, 1, 11, 11], [20, 20, 30, 30], [21, 20, 31, 30], [9, 9, 19, 19]])
    scores = torch.tensor([0.7, 0.9, 0.8, 0.5, 0.95])
    assert distinct(boxes, scores, 0.6) == [4, 1, 2]
    assert distinct(boxes, scores, 0.99) == []


def test_absent_weights_are_told(monkeypatch: pytest.MonkeyPatch, tmp_path: object) -> None:
    monkeypatch.setenv("VEILKIT_WEIGHTS", str(tmp_path))
    with pytest.raises(CheckpointError, match=r"needs yunet.onnx, but it is not in .*; point VEILKIT_WEIGHTS"):
        YuNet.load()
    monkeypatch.delenv("VEILKIT_WEIGHTS")
    monkeypatch.delenv("VEILKIT_DATA", raising=False)
    with pytest.raises(CheckpointError, match="VEILKIT_WEIGHTS is not set"):
        YuNet.load()


@pytest.mark.data
def test_it_is_opencvs_decoding() -> None:
    folder = weights_folder()
    if folder is None or not (folder / FILE).is_file():
        pytest.skip("needs yunet.onnx in VEILKIT_WEIGHTS")
    cv2 = pytest.importorskip("cv2")
    images, _ = drawn()
    net = cv2.FaceDetectorYN.create(str(folder / FILE), "", (192, 192), 0.6, 0.3, 5000)
    for image, found in zip(images, YuNet.load().detect(images), strict=True):
        pixels = image.mul(255).round().byte().flip(0).permute(1, 2, 0).contiguous().numpy()
        _, rows = net.detect(pixels)
        assert len(rows) == len(found.boxes)
        row = rows[int(np.argmax(rows[:, 14]))]
        assert np.allclose(found.points[0].flatten(), row[4:14], atol=0.05)
        assert np.allclose(found.boxes[0], [row[0], row[1], row[0] + row[2], row[1] + row[3]], atol=0.05)
