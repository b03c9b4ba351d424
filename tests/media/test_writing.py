"""Pixels to files: rounding, no metadata, and nothing seen under a final name before it is whole."""

from __future__ import annotations

import errno
import io
import os
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

from pictures import picture
from veilkit.errors import DestinationError
from veilkit.media.writing import encode, to_pixels, write_atomically


def test_pixels_are_rounded_to_the_nearest_and_clipped() -> None:
    values = torch.tensor([-0.5, 0.0, 0.4 / 255, 0.6 / 255, 127.4 / 255, 254.6 / 255, 1.0, 7.0])
    pixels = to_pixels(values.expand(3, 1, 8))
    assert pixels.shape == (1, 8, 3)
    assert pixels[0, :, 0].tolist() == [0, 0, 0, 1, 127, 255, 255, 255]


def test_tall_pictures_are_converted_like_short_ones() -> None:
    """Conversion goes strip by strip; every 8-bit value survives the way there and back in each of them."""
    stored = picture(0, 1_300, 5)
    assert (to_pixels(torch.from_numpy(stored).permute(2, 0, 1).float() / 255) == stored).all()


def test_png_is_exact_and_holds_three_kinds_of_chunks() -> None:
    pixels = picture(0, 20, 30)
    data = encode(pixels, "png")
    assert (np.asarray(Image.open(io.BytesIO(data))) == pixels).all()
    kinds, place = [], 8
    while place < len(data):
        length = int.from_bytes(data[place : place + 4], "big")
        kinds.append(data[place + 4 : place + 8])
        place += length + 12
    assert set(kinds) == {b"IHDR", b"IDAT", b"IEND"}


def test_jpeg_holds_no_metadata() -> None:
    image = Image.open(io.BytesIO(encode(picture(0, 20, 30), "jpeg")))
    assert image.mode == "RGB"
    assert not image.getexif()
    assert set(image.info) <= {"jfif", "jfif_version", "jfif_unit", "jfif_density"}


def test_the_final_name_appears_with_the_whole_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """At the moment of renaming, the scratch file is complete and the old content still stands."""
    target, scratch = tmp_path / "release" / "a" / "b.png", tmp_path / "scratch"
    scratch.mkdir()
    target.parent.mkdir(parents=True)
    target.write_bytes(b"old")
    seen = []
    replace = Path.replace

    def watched(self: Path, other: Path) -> Path:
        seen.append((self.read_bytes(), other.read_bytes()))
        return replace(self, other)

    monkeypatch.setattr(Path, "replace", watched)
    write_atomically(target, b"new", scratch)
    assert seen == [(b"new", b"old")]
    assert target.read_bytes() == b"new"
    assert list(scratch.iterdir()) == []


def test_a_full_disk_is_named_and_leaves_nothing(tmp_path: Path) -> None:
    """/dev/full takes every write and answers that the disk is full."""
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    (scratch / f"{os.getpid()}.part").symlink_to("/dev/full")
    with pytest.raises(DestinationError, match="disk is full"):
        write_atomically(tmp_path / "a.png", b"data", scratch)
    assert list(scratch.iterdir()) == []
    assert not (tmp_path / "a.png").exists()


def test_other_failures_say_what_the_system_said(tmp_path: Path) -> None:
    with pytest.raises(DestinationError, match=os.strerror(errno.ENOENT)):
        write_atomically(tmp_path / "a.png", b"data", tmp_path / "absent")
