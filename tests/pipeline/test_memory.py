"""Memory while a picture is worked on: the bytes per pixel that docs/protect.md states."""

from __future__ import annotations

from pathlib import Path

import pytest
from PIL import Image

from pictures import picture
from veilkit.pipeline.protect import protect

_PEAK = Path("/proc/self/clear_refs")
SIDE = 2_400
MOST = {"noise": 42, "blur": 42, "pixelate": 36, "mask": 36, "faceblur": 56}  # bytes per pixel, as documented


def kilobytes(what: str) -> int:
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(what))


@pytest.mark.skipif(not _PEAK.exists(), reason="only Linux tells the peak of a process's memory anew")
@pytest.mark.parametrize("method", MOST)
def test_a_picture_takes_no_more_bytes_per_pixel_than_documented(tmp_path: Path, method: str) -> None:
    settings = {"finder": "whole"} if method == "faceblur" else {}
    for folder, side in (("small", 32), ("large", SIDE)):
        (tmp_path / folder).mkdir()
        whole = Image.fromarray(picture(0, 128, 128)).resize((side, side))
        whole.save(tmp_path / folder / "a.jpg", quality=90)
        del whole
    protect(tmp_path / "small", tmp_path / "first", method, seed=0, settings=settings)  # imports what it needs
    try:
        _PEAK.write_text("5")
    except OSError:
        pytest.skip("the peak of this process's memory cannot be told anew")
    before = kilobytes("VmRSS")
    assert protect(tmp_path / "large", tmp_path / "second", method, seed=0, settings=settings).protected == 1
    assert (kilobytes("VmHWM") - before) * 1024 / SIDE**2 <= MOST[method]
