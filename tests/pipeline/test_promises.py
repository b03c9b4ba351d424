"""What is promised of any folder, by the benchmarks on fewer and smaller pictures.

Hostile files and huge claims, kills, the same bytes for the same key, nothing hidden in a release, bounded memory.
"""

from __future__ import annotations

import resource
import time
import zlib
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

import canaries
import determinism
import hostile
import kill_resume
import process
from pictures import picture, write_folder
from veilkit.errors import RefusedImage
from veilkit.media.reading import Limits, decode
from veilkit.methods import METHODS
from veilkit.pipeline.protect import protect
from veilkit.rng import Randomness
from veilkit.types import ImageBatch


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


def test_no_canary_is_found_by_a_search_that_finds_them_all_in_a_copy(tmp_path: Path) -> None:
    planted = canaries.plant(tmp_path / "source", 15, refused=3)
    assert canaries.detector_misses(tmp_path / "source", planted, tmp_path) == []
    method, settings = canaries.METHODS[0]
    search = canaries.measure(tmp_path / "source", planted, tmp_path / "work", method, settings, workers=1)
    assert search.found == set()
    assert search.leftovers == []
    assert search.protected == 15
    assert "3 pictures refused" in search.output
    # Words in plain sight pass through this method: had hidden pixels survived, they would have been found too.
    assert search.visible == len(planted.visible) == 12


def test_the_search_knows_every_encoding() -> None:
    word = "Zx81qPfm20LwEk7T"
    for number, pattern in enumerate(canaries.encodings(word)):
        assert canaries.hits(iter([("here", b"..." + pattern + b"...")]), [word]) == {("here", word)}, number
    assert canaries.hits(iter([("here", b"Zx81qPfm20LwEk7" * 3)]), [word]) == set()


PAIRED = {name: METHODS[name] for name in determinism.quick_methods()}  # the others: tests/conformance


@pytest.mark.parametrize("method", PAIRED)
def test_order_and_place_do_not_matter(tmp_path: Path, method: str) -> None:
    write_folder(tmp_path / "source", 18, height=32, width=16)
    assert determinism.differing(tmp_path / "source", tmp_path / "work", method, workers=()) == set()


@pytest.mark.parametrize("method", ["noise", "patches"])
def test_the_number_of_workers_does_not_matter(tmp_path: Path, method: str) -> None:
    write_folder(tmp_path / "source", 18, height=32, width=16)
    assert determinism.differing(tmp_path / "source", tmp_path / "work", method, workers=(2,)) == set()


# k-same draws among faces, of which these pictures have none: tests/conformance has its releases.
DRAWS = [name for name, method in PAIRED.items() if method.random and name != "ksame"]


@pytest.mark.parametrize("method", DRAWS)
def test_another_key_changes_the_pictures(tmp_path: Path, method: str) -> None:
    """All of them, but for mix-up, which draws only partners: some of 40 may get the same one again."""
    write_folder(tmp_path / "source", 40, height=32, width=16)
    share = determinism.changed_by_key(tmp_path / "source", tmp_path / "work", method)
    assert share >= 0.7 if method == "mixup" else share == 1


@pytest.mark.parametrize("method", [name for name, method in PAIRED.items() if not method.random])
def test_a_method_that_draws_nothing_does_not_depend_on_the_key(tmp_path: Path, method: str) -> None:
    write_folder(tmp_path / "source", 6, height=32, width=16)
    assert determinism.changed_by_key(tmp_path / "source", tmp_path / "work", method) == 0


def test_a_run_killed_several_times_ends_like_an_unbroken_one(tmp_path: Path) -> None:
    report = kill_resume.measure(tmp_path, kills=3, count=60, workers=1)
    assert report.partial == ()
    assert report.differing == ()
    assert any(0 < visible < 60 for _, visible in report.kills), report.kills


def test_unfinished_files_in_the_scratch_folder_are_not_part_of_a_release(tmp_path: Path) -> None:
    (tmp_path / ".veilkit").mkdir()
    (tmp_path / ".veilkit" / "1.part").write_bytes(b"half")
    (tmp_path / "a.png").write_bytes(b"whole")
    assert process.contents(tmp_path) == {"a.png": b"whole"}


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


def test_the_narrowest_picture_that_is_read_is_blurred_in_seconds() -> None:
    """Blur goes by the height: here three standard deviations are many times the width."""
    picture = ImageBatch(torch.rand(1, 3, 10_000, 100), ("tall",))
    begun = time.process_time()
    METHODS["blur"]().protect(picture, rng=Randomness.from_seed(0))
    assert time.process_time() - begun < 10


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
