"""The network of landmarks, gaze and expression: shapes, units, its eyes and its file."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from veilkit.checkpoint import save_checkpoint
from veilkit.errors import CheckpointError, ConfigError
from veilkit.networks.face_attributes import (
    FACE_ATTRIBUTES_KIND,
    HEADS,
    FaceAttributes,
    FaceAttributesConfig,
    eye_crops,
    load_face_attributes,
    save_face_attributes,
)

TINY = FaceAttributesConfig(side=32, stem=4, widths=(4, 8), blocks=(1, 1), kept=4, hidden=8, eye=4)


def tiny(seed: int = 0) -> FaceAttributes:
    torch.manual_seed(seed)
    return FaceAttributes(TINY).eval()


def test_every_head_answers_for_itself_as_in_the_whole() -> None:
    network, images = tiny(), torch.rand(2, 3, 40, 40, requires_grad=True)
    whole = network(images)
    assert whole.landmarks.shape == (2, 68, 2)
    assert whole.gaze.shape == (2, 2)
    assert whole.expression.shape == (2, 7)
    for head, answer in zip(HEADS, whole, strict=True):
        assert torch.allclose(network.predict(images, head), answer, atol=1e-6)
        assert network.features(images, head).shape == (2, 8)
    whole.gaze.sum().backward()
    assert images.grad is not None
    assert images.grad.abs().sum() > 0


def test_eyes_are_cut_where_the_landmarks_say() -> None:
    # Red is the column and green the row, so that a crop tells where it comes from.
    side = 200
    along = (torch.arange(side) + 0.5) / side
    image = torch.stack([along.expand(side, side), along[:, None].expand(side, side), torch.zeros(side, side)])[None]
    landmarks = torch.full((1, 68, 2), 0.5)
    landmarks[0, 36:42], landmarks[0, 42:48] = torch.tensor([0.35, 0.4]), torch.tensor([0.65, 0.4])
    landmarks[0, 48], landmarks[0, 54] = torch.tensor([0.4, 0.7]), torch.tensor([0.6, 0.7])
    for crop, middle in zip(eye_crops(image, landmarks), (0.35, 0.65), strict=True):
        assert crop[0, :2].mean((1, 2)).tolist() == pytest.approx([middle, 0.4], abs=1e-3)
        span = crop[0, 0, 0, -1] - crop[0, 0, 0, 0]
        assert float(span) == pytest.approx(0.6 * 0.3 * 31 / 32, abs=1e-3)


def test_a_file_gives_the_same_network_back(tmp_path: Path) -> None:
    network = tiny()
    save_face_attributes(tmp_path / "faces.safetensors", network, {"landmarks": "these", "gaze": "those"})
    again, taught = load_face_attributes(tmp_path / "faces.safetensors")
    assert again.config == TINY
    assert taught == {"landmarks": "these", "gaze": "those", "expression": ""}
    images = torch.rand(1, 3, 32, 32)
    assert torch.equal(again(images).gaze, network(images).gaze)


def test_another_config_is_told(tmp_path: Path) -> None:
    save_checkpoint(tmp_path / "odd.safetensors", {}, {"network": {"colour": 3}, "taught": {}}, FACE_ATTRIBUTES_KIND)
    with pytest.raises(CheckpointError, match=r"odd.safetensors: its configuration is not understood"):
        load_face_attributes(tmp_path / "odd.safetensors")
    with pytest.raises(ConfigError, match="multiple of 16"):
        FaceAttributesConfig(side=100)
    with pytest.raises(ConfigError, match="different names"):
        FaceAttributesConfig(expressions=("happy", "happy"))
