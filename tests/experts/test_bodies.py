"""Heads of people whose face nobody sees."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

from veilkit.errors import CheckpointError
from veilkit.experts.base import Detections
from veilkit.experts.bodies import FILE, BodyDetector, heads, tiled
from veilkit.experts.finders import load_bodies
from veilkit.experts.names import weights_folder
from veilkit.methods.faces.method import faceless_heads
from veilkit.synthetic.people import render_person


def test_the_head_is_above_or_at_either_end() -> None:
    ((left, top, right, bottom),) = heads((10, 20, 50, 140))
    assert (top, left + right) == (20, 60)
    assert 40 < bottom < 60
    ends = heads((0, 0, 200, 60))
    assert [(box[0], box[2]) for box in ends] == [(0, 60), (140, 200)]


def test_bodies_with_a_face_are_left_alone() -> None:
    bodies = Detections(torch.tensor([[0.0, 0, 40, 120], [100, 0, 140, 120]]), torch.ones(2), torch.zeros(2, 0, 2))
    found = faceless_heads(bodies, [(12.0, 4.0, 28.0, 20.0)])
    assert [round(each.box[0] + each.box[2]) for each in found] == [240]
    assert all(each.doubtful and each.body for each in found)


@pytest.mark.parametrize(("width", "height"), [(1000, 700), (333, 320), (200, 900)])
def test_whoever_is_half_as_large_as_a_tile_is_whole_in_one(width: int, height: int) -> None:
    tiles = list(tiled(width, height, 320))
    assert all(0 <= left < right <= width and 0 <= top < bottom <= height for left, top, right, bottom in tiles)
    for x in range(0, width - 158, 7):
        for y in range(0, height - 158, 7):
            assert any(left <= x and top <= y and x + 158 <= right and y + 158 <= bottom
                       for left, top, right, bottom in tiles)  # fmt: skip
    assert not list(tiled(300, 200, 320))


def test_who_looks_is_chosen_by_name(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("VEILKIT_WEIGHTS", str(tmp_path))
    assert load_bodies("auto") is None
    assert load_bodies("none") is None
    (tmp_path / FILE).write_bytes(b"no network")
    detector = load_bodies("auto")
    assert detector is not None
    with pytest.raises(CheckpointError, match="no people can be found with it"):
        detector.find(np.zeros((64, 64, 3), np.uint8))
    with pytest.raises(CheckpointError, match="cannot be read"):
        load_bodies(str(tmp_path / "absent.onnx"))


def test_a_standing_person_is_found() -> None:
    folder = weights_folder()
    if folder is None or not (folder / FILE).is_file():
        pytest.skip("VEILKIT_WEIGHTS names no folder with yolox_nano.onnx")
    person = render_person(1, 1, 1, 1)
    scene = np.full((400, 500, 3), 150, np.uint8)
    high, wide = person.shape[:2]
    scene[100 : 100 + high, 200 : 200 + wide] = person
    (found,) = BodyDetector.load(folder / FILE, threshold=0.3).detect(
        torch.from_numpy(scene).permute(2, 0, 1).float().div(255)[None]
    )
    x, y = 200 + wide / 2, 100 + high / 2
    assert any(left < x < right and top < y < bottom for left, top, right, bottom in found.boxes.tolist())
