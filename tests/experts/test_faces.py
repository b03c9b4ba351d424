"""The face experts by name, and the packaged network on faces it never saw."""

from __future__ import annotations

import importlib

import pytest
import torch

from tests.experts.faces_of_nobody import drawn, landmarks
from veilkit.errors import CheckpointError, MissingExtraError, UnknownNameError
from veilkit.experts import load_detector, load_face_embedder, load_predictor
from veilkit.experts.alignment import moved, warp
from veilkit.experts.face_attributes import FaceAttributePredictor
from veilkit.experts.faces import DETECTORS, FACE_EMBEDDERS, PREDICTORS
from veilkit.training.face_crops import plain_matrix


def test_names_are_known_and_unknown_ones_answered() -> None:
    assert {"dlib", "mobilefacenet"} == set(FACE_EMBEDDERS)
    assert {"dlib", "dlib-68", "yunet"} == set(DETECTORS)
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


def test_the_packaged_landmarks_beat_the_mean_face() -> None:
    images, truths = drawn(6)
    marks = landmarks(truths)
    matrix = plain_matrix(marks, 192)
    found = load_predictor("landmarks").predict(warp(images, matrix, (192, 192)))
    truth = moved(marks, matrix)
    error = (found - truth).norm(dim=-1).mean()
    assert error < (truth.mean(0) - truth).norm(dim=-1).mean()


def test_the_packaged_network_is_of_generated_faces_alone() -> None:
    for name in ("landmarks", "gaze", "expression"):
        expert = load_predictor(name)
        assert isinstance(expert, FaceAttributePredictor)
        assert expert.info.source.endswith("generated faces")
        assert "real" not in expert.info.source
        assert expert.differentiable
        assert expert.info.origin == "built-in"
        assert "generated faces" in expert.info.card
