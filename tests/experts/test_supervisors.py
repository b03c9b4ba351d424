"""Experts that supervise a training on faces, by name."""

from __future__ import annotations

from importlib import metadata, resources

import pytest
import torch

from tests.methods.experts import tiny_expert_file
from veilkit.errors import ConfigError, MissingExtraError, UnknownNameError, VeilkitError
from veilkit.experts import load_predictor
from veilkit.experts.base import ExpertInfo, Predictor
from veilkit.experts.face_attributes import PACKAGED
from veilkit.experts.supervisors import PredictorFeatures, load_identity, load_utility


def test_names_files_and_what_is_unknown() -> None:
    assert load_identity("people").name == "people"
    assert load_utility("people").name == "people"
    assert load_identity(tiny_expert_file("vit-small")).differentiable
    with pytest.raises(UnknownNameError, match=r"unknown identity expert 'dlub'; did you mean 'dlib'.*mobilefacenet"):
        load_identity("dlub")
    with pytest.raises(UnknownNameError, match=r"unknown utility expert 'gase'; did you mean 'gaze'"):
        load_utility("gase")


def test_dlib_by_name_and_what_is_said_without_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    def absent(name: str) -> None:
        raise metadata.PackageNotFoundError(name)

    monkeypatch.setattr(metadata, "files", absent)
    with pytest.raises(MissingExtraError, match=r"veilkit\[faces\].*set identity to another expert"):
        load_identity("dlib")


@pytest.mark.parametrize("name", ["landmarks", "gaze", "expression"])
def test_a_packaged_predictor_supervises_by_its_last_features(name: str) -> None:
    images = torch.rand(2, 3, 64, 64, generator=torch.Generator().manual_seed(0)).requires_grad_()
    expert = load_utility(name)
    features = expert.embed(images)
    assert (features.shape, expert.info.kind, expert.name) == ((2, expert.dim), "embedder", name)
    torch.testing.assert_close(features, load_predictor(name).features(images))  # type: ignore[attr-defined]
    features.sum().backward()
    assert images.grad is not None
    assert images.grad.abs().sum() > 0


def test_a_head_of_a_file_supervises_too() -> None:
    with resources.as_file(resources.files("veilkit.experts") / "weights" / PACKAGED) as file:
        expert = load_utility(f"gaze@{file}")
    images = torch.rand(2, 3, 64, 64, generator=torch.Generator().manual_seed(0))
    assert torch.equal(expert.embed(images), load_utility("gaze").embed(images))
    with pytest.raises(UnknownNameError, match=r"unknown head 'gase'; did you mean 'gaze'"):
        load_utility("gase@faces.safetensors")
    with pytest.raises(VeilkitError, match=r"none\.safetensors"):
        load_utility("gaze@none.safetensors")


def test_a_predictor_without_gradients_is_refused() -> None:
    with pytest.raises(ConfigError, match="can judge, but not supervise"):
        load_utility("dlib-landmarks-5")


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
