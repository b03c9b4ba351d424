"""Hostile files, by the command line as at full scale (benchmarks/hostile.py), with a smaller huge picture."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from PIL import Image

import hostile
from veilkit.pipeline.protect import protect


def test_every_file_is_protected_or_refused_in_bounded_memory(tmp_path: Path) -> None:
    hostile.build(tmp_path / "source", 180, huge=1_500)
    assert len(hostile.listed(tmp_path / "source")) == 180
    report = hostile.measure(tmp_path / "source", tmp_path / "work", "pixelate", workers=1)
    assert not report.crashed, report.output
    assert not report.unaccounted
    assert report.protected > 50
    assert sum(report.refused.values()) == 180 - report.protected
    assert report.megabytes < 1_000


def test_a_method_that_mixes_takes_what_can_be_read(tmp_path: Path) -> None:
    hostile.build(tmp_path / "source", 150, huge=600)
    (tmp_path / "source" / "itself.jpg").unlink()
    outcome = protect(tmp_path / "source", tmp_path / "release", "patches", labels="none")
    assert outcome.refused["a link to a folder, which is not followed"] == 2
    assert outcome.protected + sum(outcome.refused.values()) == 149 + 2 + 1  # "..png" is a JPEG without a suffix
    assert outcome.protected == len(list((tmp_path / "release").glob("*.png"))) > 50


@pytest.mark.parametrize("orientation", range(1, 9))
def test_turned_pictures_are_released_upright(tmp_path: Path, orientation: int) -> None:
    (tmp_path / "source").mkdir()
    (tmp_path / "source" / "a.jpg").write_bytes(hostile.oriented(orientation))
    protect(tmp_path / "source", tmp_path / "release", "pixelate", names="kept", seed=0,
            settings={"cell": 20, "at_height": 0})  # fmt: skip
    pixels = np.asarray(Image.open(tmp_path / "release" / "a.png"), dtype=int)
    assert pixels.shape == (80, 40, 3)
    for row, column, colour in ((10, 5, (0, 255, 0)), (10, 35, (255, 0, 0)), (70, 5, (0, 0, 255))):
        assert np.abs(pixels[row, column] - colour).max() < 12
