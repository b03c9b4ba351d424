"""A small file that claims a long, narrow or huge picture is refused before anything of it is unpacked."""

from __future__ import annotations

import resource
import time
import zlib
from pathlib import Path

import pytest

import hostile
from veilkit.errors import RefusedImage
from veilkit.media.reading import Limits, decode
from veilkit.pipeline.protect import protect

MODELLESS = ("blur", "noise", "pixelate", "mask", "patches", "mixup", "faceblur", "facereplace")
SHAPES = ((16, 100_000), (100_000, 16), (1, 50_000_000), (50_000_000, 1), (49_000_000, 1))


def flat(width: int, height: int) -> bytes:
    """A whole grey PNG of that size in few bytes."""
    squeezer, row = zlib.compressobj(9), bytes(width + 1)
    rows = max(1, 2**22 // len(row))
    parts = [squeezer.compress(row * min(rows, height - top)) for top in range(0, height, rows)]
    return hostile.png(width, height, b"".join(parts) + squeezer.flush(), colour=0)


@pytest.mark.parametrize(("width", "height"), SHAPES)
def test_lines_of_pixels_are_refused_at_once_and_without_memory(width: int, height: int) -> None:
    data = flat(width, height)
    assert len(data) < 200_000
    before, begun = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, time.process_time()
    with pytest.raises(RefusedImage, match=f"picture too long: {width}x{height} pixels, a side of at most 32767"):
        decode(data, Limits())
    assert time.process_time() - begun < 1
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 20_000  # kilobytes


def test_narrow_pictures_are_refused_with_the_limit() -> None:
    assert decode(flat(10, 1_000), Limits()).shape == (1_000, 10, 3)
    with pytest.raises(RefusedImage, match="picture too narrow: 10x1001 pixels, a side is read up to 100 times"):
        decode(flat(10, 1_001), Limits())


def test_the_limits_can_be_set() -> None:
    assert decode(flat(40_000, 10), Limits(side=40_000, aspect=4_000)).shape == (10, 40_000, 3)


@pytest.mark.parametrize("workers", [0, 1])
def test_one_such_picture_does_not_keep_the_others_from_being_done(tmp_path: Path, workers: int) -> None:
    _write(tmp_path)
    outcome = protect(tmp_path / "source", tmp_path / "release", "blur", workers=workers)
    assert (outcome.protected, dict(outcome.refused)) == (2, {"picture too long": 2})


@pytest.mark.parametrize("method", MODELLESS)
def test_every_method_without_a_model_refuses_them_quickly(tmp_path: Path, method: str) -> None:
    _write(tmp_path)
    faces, mixing = {"finder": "whole"}, {"people": 2}
    settings = {"faceblur": faces, "facereplace": faces, "patches": mixing, "mixup": mixing}.get(method, {})
    begun = time.process_time()
    outcome = protect(tmp_path / "source", tmp_path / "release", method, settings=settings, labels="none")
    assert (outcome.protected, dict(outcome.refused)) == (2, {"picture too long": 2})
    assert time.process_time() - begun < 15


def _write(folder: Path) -> None:
    (folder / "source").mkdir()
    for name, shape in (("long", (16, 100_000)), ("line", (1, 50_000_000)), ("a", (40, 60)), ("b", (40, 60))):
        (folder / "source" / f"{name}.png").write_bytes(flat(*shape))
