"""The face experts by name, and the packaged network on faces it never saw."""

from __future__ import annotations

import importlib

import numpy as np
import pytest
import torch

from veilkit.errors import CheckpointError, MissingExtraError, UnknownNameError
from veilkit.experts import load_detector, load_face_embedder, load_predictor
from veilkit.experts.alignment import moved, warp
from veilkit.experts.face_attributes import FaceAttributePredictor
from veilkit.experts.faces import DETECTORS, FACE_EMBEDDERS, PREDICTORS
from veilkit.synthetic.faces import render_face
from veilkit.training.face_attributes import plain_matrix


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
