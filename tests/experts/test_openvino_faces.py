"""Intel's networks say of generated faces about what is true of them, where the weights and the extra are there."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from tests.experts.faces_of_nobody import drawn, landmarks
from veilkit.errors import UsageError
from veilkit.experts import load_predictor
from veilkit.experts.alignment import ARCFACE
from veilkit.experts.names import weights_folder
from veilkit.synthetic.faces import Ranges, render_face

pytest.importorskip("openvino", reason="the extra openvino is not installed")
folder = weights_folder()
pytestmark = [
    pytest.mark.data,
    pytest.mark.skipif(
        folder is None or not (folder / "gaze-estimation-adas-0002.xml").is_file(),
        reason="needs Intel's networks and yunet.onnx in VEILKIT_WEIGHTS",
    ),
]


def test_five_landmarks_lie_on_the_face_and_nothing_is_said_of_no_face() -> None:
    images, truths = drawn()
    truth = ARCFACE.chosen(landmarks(truths))
    found = load_predictor("openvino-landmarks").predict(torch.cat([images, torch.zeros(1, 3, 192, 192)]))
    assert found[3].isnan().all()
    between = (truth[:, 0] - truth[:, 1]).norm(dim=-1)
    assert ((found[:3] - truth).norm(dim=-1).mean(1) / between).max() < 0.2


def test_signs_are_those_of_the_truth() -> None:
    ranges = Ranges(35, 2, 2, 2, 2)
    made = [render_face(5, person, 3, size=192, ranges=ranges) for person in range(1, 13)]
    images = torch.from_numpy(np.stack([picture for picture, _ in made])).permute(0, 3, 1, 2).float().div(255)
    yaw = np.array([truth.pose[0] for _, truth in made])
    for name in ("openvino-head-pose", "openvino-gaze"):
        found = load_predictor(name).predict(images)[:, 0].numpy()
        known = np.isfinite(found)
        assert known.sum() >= 8
        assert np.corrcoef(found[known], yaw[known])[0, 1] > 0.7
    with pytest.raises(UsageError, match="not supervise"):
        load_predictor("openvino-gaze").predict(images[:1].clone().requires_grad_(True))
