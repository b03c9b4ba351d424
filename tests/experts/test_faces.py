"""The face experts by name: who judges, who supervises, and those that are shown a part of wide crops."""

from __future__ import annotations

import importlib
from importlib import metadata, resources

import numpy as np
import pytest
import torch

from tests.attacks.learners import JUDGE
from tests.methods.experts import pictures, tiny_expert_file, toy_expert
from veilkit.audit.inputs.judges import choose_expert, choose_judge
from veilkit.errors import CheckpointError, ConfigError, MissingExtraError, UnknownNameError, VeilkitError
from veilkit.experts import load_detector, load_face_embedder, load_predictor
from veilkit.experts.alignment import moved, view, warp
from veilkit.experts.base import ExpertInfo, Predictor
from veilkit.experts.face_attributes import FaceAttributePredictor
from veilkit.experts.faces import (
    DETECTORS,
    FACE_EMBEDDERS,
    PREDICTORS,
    PredictorFeatures,
    Viewed,
    load_identity,
    load_utility,
    load_viewed,
    names_view,
)
from veilkit.synthetic.faces import render_face
from veilkit.training.face_attributes import plain_matrix


def test_names_are_known_and_unknown_ones_answered() -> None:
    assert {"dlib", "mobilefacenet"} == set(FACE_EMBEDDERS)
    assert {"centerface", "dlib", "dlib-68", "mtcnn", "retinaface", "yunet"} == set(DETECTORS)
    with pytest.raises(UnknownNameError, match="did you mean 'gaze'"):
        load_predictor("gase")


@pytest.mark.parametrize("name", ["openvino-gaze", "openvino-head-pose", "openvino-landmarks", "fer-expression"])
def test_judges_say_which_weights_they_need(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("VEILKIT_WEIGHTS", raising=False)
    monkeypatch.delenv("VEILKIT_DATA", raising=False)
    assert name in PREDICTORS
    with pytest.raises(CheckpointError, match="point VEILKIT_WEIGHTS"):
        load_predictor(name)
    with pytest.raises(CheckpointError, match=r"mobilefacenet.onnx"):
        load_face_embedder("mobilefacenet")


def test_a_detector_without_its_extra_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    def absent(name: str) -> None:
        raise ImportError(name)

    monkeypatch.setattr(importlib, "import_module", absent)
    detector = load_detector("dlib")  # nothing is loaded before it is asked
    with pytest.raises(MissingExtraError, match=r"veilkit\[faces\]"):
        detector.detect(torch.zeros(1, 3, 64, 64))


def test_the_packaged_landmarks_beat_the_mean_face_over_all_poses() -> None:
    made = [render_face(7, person, 1, size=192) for person in range(1, 13)]
    images = torch.from_numpy(np.stack([picture for picture, _ in made])).permute(0, 3, 1, 2).float().div(255)
    marks = torch.from_numpy(np.stack([truth.landmarks for _, truth in made]))
    matrix = plain_matrix(marks, 192)
    found = load_predictor("landmarks").predict(warp(images, matrix, (192, 192)))
    truth = moved(marks, matrix)
    error = (found - truth).norm(dim=-1).mean()
    others = (truth.sum(0) - truth) / (len(truth) - 1)  # the mean of all but the one that is judged
    assert error < (others - truth).norm(dim=-1).mean()


def test_the_packaged_network_is_of_generated_faces_alone() -> None:
    for name in ("landmarks", "gaze", "expression"):
        expert = load_predictor(name)
        assert isinstance(expert, FaceAttributePredictor)
        assert expert.info.source.endswith("generated faces")
        assert "real" not in expert.info.source
        assert expert.differentiable
        assert expert.info.origin == "built-in"
        assert "generated faces" in expert.info.card


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
    with resources.as_file(resources.files("veilkit.experts") / "weights" / "faces.safetensors") as file:
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


def test_a_viewed_expert_embeds_the_view_and_is_another_expert_than_the_one_it_asks() -> None:
    crops, toy = pictures(2, 16, 16), toy_expert()
    seen = Viewed(toy, "arcface")
    assert torch.equal(seen.embed(crops), toy.embed(view(crops, "arcface")))
    assert not torch.equal(seen.embed(crops), toy.embed(crops))
    prints = {toy.info.fingerprint, seen.info.fingerprint, Viewed(toy, "dlib").info.fingerprint}
    assert len(prints) == 3  # features that are kept never belong to another view
    assert seen.name == "toy@arcface"
    assert seen.dim == toy.dim


def test_names_with_a_view_are_told_from_names_without() -> None:
    assert names_view("dlib@dlib")
    assert not any(names_view(name) for name in ("dlib", "me@home.safetensors", "@"))
    assert load_viewed("histogram@whole").name == "histogram@whole"
    with pytest.raises(UnknownNameError, match="identity expert"):
        load_viewed("histogrm@whole")


def test_audits_take_them_as_expert_and_as_judge() -> None:
    expert, _ = choose_expert("histogram@whole")
    judge, notes = choose_judge("histogram@arcface", expert)
    assert (expert.name, judge.name, notes) == ("histogram@whole", "histogram@arcface", ())


def test_an_expert_sees_the_middle_of_a_wide_crop_and_nothing_around_it() -> None:
    crops = torch.rand(2, 3, 160, 160, generator=torch.Generator().manual_seed(0))
    framed = crops.clone()
    framed[:, :, :18] = framed[:, :, 142:] = framed[:, :, :, :18] = framed[:, :, :, 142:] = 0
    seen = Viewed(JUDGE, "arcface")
    torch.testing.assert_close(seen.embed(framed), JUDGE.embed(crops[:, :, 20:140, 20:140]), atol=1e-5, rtol=0)
    assert torch.equal(Viewed(JUDGE, "whole").embed(crops), JUDGE.embed(crops))


def test_features_of_another_view_are_of_another_expert() -> None:
    prints = {Viewed(JUDGE, view).info.fingerprint for view in ("whole", "arcface", "dlib")}
    assert len(prints | {JUDGE.info.fingerprint}) == 4
    assert Viewed(JUDGE, "arcface").dim == JUDGE.dim
    with pytest.raises(UnknownNameError, match="view"):
        Viewed(JUDGE, "wide")
