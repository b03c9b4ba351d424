"""Face finders by name, and what is said where there is none."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from veilkit.errors import CheckpointError, ConfigError, UnknownNameError
from veilkit.experts.alignment import WIDE
from veilkit.experts.base import ExpertInfo, Predictor
from veilkit.experts.finders import load_finder
from veilkit.experts.predictor_features import PredictorFeatures


def test_whole_takes_the_picture_for_an_aligned_crop() -> None:
    found = load_finder("whole").detect(torch.rand(2, 3, 50, 40))
    assert len(found) == 2
    assert found[0].boxes.tolist() == [[0, 0, 40, 50]]
    matrix = WIDE["five"].matrix(found[1].points * torch.tensor([1, 40 / 50]), 40)  # of the picture made square
    torch.testing.assert_close(matrix[0], torch.eye(2, 3), atol=1e-5, rtol=0)


def test_head_is_the_upper_part_of_a_person() -> None:
    (found,) = load_finder("head").detect(torch.rand(1, 3, 100, 40))
    torch.testing.assert_close(found.boxes, torch.tensor([[10.0, 0.0, 30.0, 22.0]]))
    assert load_finder("head").info.fingerprint != load_finder("whole").info.fingerprint


def test_what_is_missing_is_told(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"finder=PATH of YuNet.*finder=whole.*finder=head"):
        load_finder("")
    with pytest.raises(UnknownNameError, match="did you mean 'whole'"):
        load_finder("whol")
    with pytest.raises(CheckpointError, match="cannot be read"):
        load_finder(str(tmp_path / "yunet.onnx"))
    (tmp_path / "broken.onnx").write_bytes(b"no network")
    with pytest.raises(CheckpointError, match="expected YuNet's ONNX file"):
        load_finder(str(tmp_path / "broken.onnx")).detect(torch.rand(1, 3, 64, 64))


class Mean(Predictor):
    """The mean colour, (N, 3, 1)."""

    def __init__(self, differentiable: bool) -> None:
        self._differentiable = differentiable

    @property
    def info(self) -> ExpertInfo:
        return ExpertInfo("mean", "predictor", 3, "0" * 64, self._differentiable, "none", "", "user")

    def predict(self, images: torch.Tensor) -> torch.Tensor:
        return images.mean((2, 3))[:, :, None]


def test_a_predictor_as_features() -> None:
    images = torch.rand(2, 3, 4, 4, requires_grad=True)
    expert = PredictorFeatures(Mean(True))
    assert (expert.dim, expert.info.kind) == (3, "embedder")
    expert.embed(images)[:, 0].sum().backward()
    assert images.grad is not None
    torch.testing.assert_close(images.grad[:, 0], torch.full((2, 4, 4), 1 / 16))
    with pytest.raises(ConfigError, match="can judge, but not supervise"):
        PredictorFeatures(Mean(False))
