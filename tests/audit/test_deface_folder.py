"""The benchmark of folders that deface makes, with a stand-in for deface that leaves names as deface does."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

import deface_folder
from veilkit.audit.inputs.boxes import read_boxes
from veilkit.pipeline.pairing import pair

STAND_IN = """#!/bin/sh
for file in "$1"/*.png; do cp "$file" "${file%.png}_anonymized.png"; done
"""


@pytest.fixture
def photos(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[Path, Any]:
    for name, value in {"PEOPLE": 4, "IMAGES": 1, "TOGETHER": 2, "SIZE": 64}.items():
        monkeypatch.setattr(deface_folder, name, value)
    return deface_folder.photographs(tmp_path)


def command(folder: Path, text: str) -> str:
    script = folder / "stand-in"
    script.write_text(text)
    script.chmod(0o755)
    return str(script)


def test_what_deface_writes_is_paired_by_its_word_and_boxes_lie_in_the_photographs(
    photos: tuple[Path, Any], tmp_path: Path
) -> None:
    folder, faces = photos
    release = deface_folder.defaced(command(tmp_path, STAND_IN), folder, tmp_path / "defaced")
    names = [sorted(file.name for file in each.iterdir()) for each in (folder, release)]
    assert len(names[0]) == len(names[1]) == 2
    pairs = dict(pair(names[0], names[1], None, (), lambda: {}).pairs)
    assert pairs == {name: name.replace(".png", "_anonymized.png") for name in names[0]}
    boxes = read_boxes(deface_folder.boxes_file(faces, tmp_path / "boxes.csv"))
    assert len(boxes) == 4
    assert {box.path for box in boxes} == set(names[0])
    assert {box.identity for box in boxes} == set(faces.people)
    assert deface_folder.changed(faces, folder, release) == 0
    blank = release / names[1][0]
    with Image.open(blank) as image:
        Image.fromarray(np.zeros((image.height, image.width, 3), np.uint8)).save(blank)
    assert deface_folder.changed(faces, folder, release) == 2


def test_a_deface_that_fails_or_is_absent_ends_the_benchmark(
    photos: tuple[Path, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(SystemExit, match="wrote 0 pictures and ended with 3"):
        deface_folder.defaced(command(tmp_path, "#!/bin/sh\nexit 3\n"), photos[0], tmp_path / "defaced")
    monkeypatch.setattr(shutil, "which", lambda name: None)
    monkeypatch.setattr("sys.argv", ["deface_folder.py"])
    with pytest.raises(SystemExit, match="deface is not installed"):
        deface_folder.main()


def test_the_row_says_how_pictures_were_paired_and_what_was_found() -> None:
    attack = {"attack": "linkage", "applicable": True, "invalid": [], "details": {"chance": {"rank-1": 0.1}},
              "scores": [{"metric": "rank-1", "value": 0.25}]}  # fmt: skip
    result = {"paired_by": "by name", "attacks": [attack, {**attack, "attack": "own_original", "invalid": ["weak"]}]}
    assert deface_folder.told(result, 4, 3) == (
        "paired by name; deface changed 3 of 4 faces; linkage rank-1 0.250, chance 0.100; "
        "own_original rank-1 0.250, chance 0.100, INVALID"
    )
