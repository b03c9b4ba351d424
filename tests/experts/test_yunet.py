"""YuNet through OpenCV, against its network run by onnxruntime and decoded here where the weights are there."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

from tests.experts.faces_of_nobody import drawn
from veilkit.errors import CheckpointError, UsageError
from veilkit.experts.names import weights_folder
from veilkit.experts.yunet import FILE, YuNet


def test_absent_weights_are_told(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("VEILKIT_WEIGHTS", str(tmp_path))
    with pytest.raises(CheckpointError, match=r"needs yunet.onnx, but it is not in .*; point VEILKIT_WEIGHTS"):
        YuNet.load()
    monkeypatch.delenv("VEILKIT_WEIGHTS")
    monkeypatch.delenv("VEILKIT_DATA", raising=False)
    with pytest.raises(CheckpointError, match="VEILKIT_WEIGHTS is not set"):
        YuNet.load()


def test_another_file_and_a_wanted_gradient_are_refused(tmp_path: Path) -> None:
    with pytest.raises(CheckpointError, match="cannot be read"):
        YuNet.load(tmp_path / "yunet.onnx")
    (tmp_path / "broken.onnx").write_bytes(b"no network")
    expert = YuNet.load(tmp_path / "broken.onnx")
    with pytest.raises(CheckpointError, match="expected YuNet's ONNX file"):
        expert.detect(torch.rand(1, 3, 64, 64))
    with pytest.raises(UsageError, match="can judge, but not supervise"):
        expert.detect(torch.rand(1, 3, 64, 64, requires_grad=True))


def surest(session: object, image: torch.Tensor) -> tuple[float, np.ndarray, np.ndarray]:
    """Score, box and points of the surest cell of three grids, of 8, 16 and 32 pixels.

    A cell tells the middle and the logarithms of the sides of a box, and points, in cells from its left top corner.
    """
    blob = image.mul(255).round().flip(0)[None].numpy()
    best = (-1.0, np.zeros(4), np.zeros((5, 2)))
    for cell in (8, 16, 32):
        names = [f"{part}_{cell}" for part in ("cls", "obj", "bbox", "kps")]
        faces, there, boxes, points = (each[0] for each in session.run(names, {"input": blob}))  # type: ignore[attr-defined]
        scores = np.sqrt(faces[:, 0].clip(0, 1) * there[:, 0].clip(0, 1))
        place = int(scores.argmax())
        corner = np.array([place % (image.shape[2] // cell), place // (image.shape[2] // cell)])
        middle, half = (corner + boxes[place, :2]) * cell, np.exp(boxes[place, 2:]) * cell / 2
        found = (points[place].reshape(5, 2) + corner) * cell
        best = max(
            best, (float(scores[place]), np.concatenate([middle - half, middle + half]), found), key=lambda b: b[0]
        )
    return best


@pytest.fixture
def weights() -> Path:
    folder = weights_folder()
    if folder is None or not (folder / FILE).is_file():
        pytest.skip("needs yunet.onnx in VEILKIT_WEIGHTS")
    return folder / FILE


@pytest.mark.data
def test_it_is_what_the_network_says(weights: Path) -> None:
    runtime = pytest.importorskip("onnxruntime")
    session = runtime.InferenceSession(str(weights), providers=["CPUExecutionProvider"])
    images, _ = drawn()
    for image, found in zip(images, YuNet.load().detect(images), strict=True):
        score, box, points = surest(session, image)
        assert float(found.scores[0]) == pytest.approx(score, abs=1e-3)
        np.testing.assert_allclose(found.boxes[0], box, atol=0.05)
        np.testing.assert_allclose(found.points[0], points, atol=0.05)


@pytest.mark.data
def test_large_pictures_are_shrunk_and_answered_in_their_own_pixels(weights: Path) -> None:
    images, truths = drawn()
    large = torch.nn.functional.interpolate(images, scale_factor=5, mode="bilinear")
    for found, truth in zip(YuNet.load(weights).detect(large), truths, strict=True):
        assert (found.points[0] / 5 - torch.from_numpy(truth.five)).norm(dim=1).mean() < 8
