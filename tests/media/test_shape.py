"""One size in pixels and in bytes for all files of a release, so that neither tells an original."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from pictures import picture
from tests.cli.test_commands import veilkit
from veilkit.errors import ConfigError, DestinationError, UsageError
from veilkit.media.shape import Shape
from veilkit.pipeline.protect import protect

SIZES = ((40, 20), (60, 33), (17, 90), (300, 200))


@pytest.fixture
def source(tmp_path: Path) -> Path:
    """Pictures of different sizes, and one of a single colour, whose file is far smaller than others."""
    (tmp_path / "source").mkdir()
    for index, (height, width) in enumerate(SIZES):
        Image.fromarray(picture(index, height, width)).save(tmp_path / "source" / f"{index}.png")
    Image.new("RGB", (20, 40), "teal").save(tmp_path / "source" / "flat.png")
    return tmp_path / "source"


def sizes(release: Path) -> tuple[set[tuple[int, int]], set[int]]:
    """The sizes of a release's pictures in pixels, and of its files in bytes."""
    files = list(release.glob("*.png"))
    assert len(files) == len(SIZES) + 1
    pixels = set()
    for file in files:
        with Image.open(file) as image:
            pixels.add(image.size)
    return pixels, {file.stat().st_size for file in files}


def test_without_a_shape_sizes_in_pixels_and_bytes_survive(source: Path, tmp_path: Path) -> None:
    protect(source, tmp_path / "release", "noise", seed=0)
    pixels, lengths = sizes(tmp_path / "release")
    assert pixels == {(width, height) for height, width in SIZES}
    assert len(lengths) >= len(SIZES)


@pytest.mark.parametrize("stretch", [False, True])
@pytest.mark.parametrize("method", ["noise", "pixelate", "patches"])
def test_with_size_and_even_files_no_file_differs_from_another_in_size(
    source: Path, tmp_path: Path, method: str, stretch: bool
) -> None:
    protect(
        source, tmp_path / "release", method, seed=0, labels="none", size="64x48", stretch=stretch, pad_files=True
    )
    pixels, lengths = sizes(tmp_path / "release")
    assert pixels == {(64, 48)}
    assert len(lengths) == 1


def test_even_files_alone_are_as_large_as_their_pixels(source: Path, tmp_path: Path) -> None:
    protect(source, tmp_path / "release", "pixelate", seed=0, names="kept", pad_files=True)
    length = {file.stem: file.stat().st_size for file in (tmp_path / "release").glob("*.png")}
    assert length["0"] == length["flat"] == pytest.approx(3 * 40 * 20, abs=200)


def test_a_picture_is_fitted_whole_between_black_bars() -> None:
    shown = Shape((100, 50)).fitted(np.full((20, 10, 3), 200, np.uint8))
    assert shown.shape == (50, 100, 3)
    assert (shown[:, 37:62] == 200).all()
    assert (shown[:, :37] == 0).all()
    assert (shown[:, 62:] == 0).all()
    assert (Shape((100, 50), stretch=True).fitted(np.full((20, 10, 3), 200, np.uint8)) == 200).all()
    thin = Shape((50, 50)).fitted(np.full((2, 1_000, 3), 200, np.uint8))
    assert (thin == 200).any()


def test_another_shape_is_another_release_and_the_same_one_is_kept(source: Path, tmp_path: Path) -> None:
    protect(source, tmp_path / "release", "mask", seed=0, size="32x32")
    before = {file: file.stat().st_ctime_ns for file in (tmp_path / "release").glob("*.png")}
    protect(source, tmp_path / "release", "mask", seed=0, size="32x32")
    assert {file: file.stat().st_ctime_ns for file in (tmp_path / "release").glob("*.png")} == before
    with pytest.raises(DestinationError, match="another format"):
        protect(source, tmp_path / "release", "mask", seed=0)


@pytest.mark.parametrize("size", ["0x5", "5", "axb", "-4x4", "40000x4", "30000x30000", "4x4x4", ""])
def test_sizes_that_are_none_are_told(size: str) -> None:
    with pytest.raises(ConfigError, match="size"):
        Shape.parse(size)


def test_shapes_that_do_not_go_together_are_told(source: Path, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="stretch needs a size"):
        Shape.parse(None, stretch=True)
    with pytest.raises(UsageError, match="only PNG"):
        protect(source, tmp_path / "release", "mask", image_format="jpeg", pad_files=True)


def test_the_command_takes_a_shape(source: Path, tmp_path: Path) -> None:
    words = ("--method", "mask", "--workers", 0, "--size", "64x48", "--pad-files")
    done = veilkit("protect", source, tmp_path / "release", *words)
    assert done.returncode == 0, done.stderr
    pixels, lengths = sizes(tmp_path / "release")
    assert pixels == {(64, 48)}
    assert len(lengths) == 1
