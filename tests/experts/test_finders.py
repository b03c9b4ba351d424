"""Face finders by name, and what is said where there is none."""

from __future__ import annotations

import importlib
import pickle
from pathlib import Path

import pytest
import torch

from tests.experts.faces_of_nobody import drawn
from veilkit.errors import CheckpointError, MissingExtraError, UnknownNameError
from veilkit.experts.alignment import WIDE, moved
from veilkit.experts.finders import load_finder


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
    with pytest.raises(UnknownNameError, match="did you mean 'whole'"):
        load_finder("whol")
    with pytest.raises(UnknownNameError, match=r"dlib-68, head, mtcnn, retinaface, whole, yunet, or the path"):
        load_finder("")
    with pytest.raises(CheckpointError, match="cannot be read"):
        load_finder(str(tmp_path / "yunet.onnx"))


def test_without_the_extra_it_and_the_alternatives_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    def absent(name: str) -> None:
        raise ImportError(name)

    monkeypatch.setattr(importlib, "import_module", absent)
    with pytest.raises(MissingExtraError, match=r"veilkit\[faces\].*YuNet's ONNX file.*whole.*head") as caught:
        load_finder("dlib")
    assert str(pickle.loads(pickle.dumps(caught.value))) == str(caught.value)


@pytest.mark.parametrize("name", ["dlib", "dlib-68"])
def test_points_of_each_finder_bring_the_face_to_the_same_place(name: str) -> None:
    pytest.importorskip("dlib", reason="the extra faces is not installed")
    images, truths = drawn()
    for found, truth in zip(load_finder(name).detect(images), truths, strict=True):
        assert len(found.boxes) == 1
        template, five = WIDE[found.order], torch.from_numpy(truth.five)[None].float()
        placed = moved(five, template.matrix(found.points, 100))
        wanted = moved(five, WIDE["five"].matrix(five, 100))
        assert (placed - wanted).norm(dim=-1).mean() < 6  # of 100 pixels
        assert float(template.misfit(found.points)) < 0.08
