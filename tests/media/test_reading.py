"""What is refused and why, what a picture looks like once read; and that libraries say nothing of it."""

from __future__ import annotations

import io
import logging
import os
import struct
import warnings
import zlib
from pathlib import Path

import numpy as np
import pytest
from PIL import Image, ImageCms

import hostile
from pictures import picture
from veilkit.errors import RefusedImage
from veilkit.media.reading import FORMATS, Limits, decode, read_bytes
from veilkit.pipeline.protect import protect

LIMITS = Limits()
SMALL = Limits(pixels=10_000)


def encoded(image: Image.Image, form: str = "PNG", **options: object) -> bytes:
    return hostile.encoded(image, form, **options)


@pytest.mark.parametrize("form", FORMATS)
def test_every_format_gives_the_pixels_that_were_stored(form: str) -> None:
    stored = picture(0, 33, 17)
    options = {"JPEG": {"quality": 100, "subsampling": 0}, "WEBP": {"lossless": True}}.get(form, {})
    read = decode(encoded(Image.fromarray(stored), form, **options), LIMITS)
    assert read.dtype == np.uint8
    assert read.shape == (33, 17, 3)
    most = {"JPEG": 12, "GIF": 60}.get(form, 0)  # a GIF has 256 colours
    assert np.abs(read.astype(int) - stored).max() <= most


@pytest.mark.parametrize("orientation", range(1, 9))
def test_a_turned_picture_comes_out_upright(orientation: int) -> None:
    read = decode(hostile.oriented(orientation), LIMITS).astype(int)
    assert read.shape == (80, 40, 3)
    for row, column, colour in (
        (20, 10, (0, 255, 0)),
        (20, 30, (255, 0, 0)),
        (60, 10, (0, 0, 255)),
        (60, 30, (0, 0, 255)),
    ):
        assert np.abs(read[row, column] - colour).max() < 12


@pytest.mark.parametrize("orientation", [0, 9, 65_535])
def test_an_orientation_that_means_nothing_is_ignored(orientation: int) -> None:
    assert decode(hostile.oriented(orientation), LIMITS).shape == (80, 40, 3)


def test_hidden_pixels_are_white_and_half_hidden_ones_are_blended() -> None:
    pixels = np.zeros((3, 4, 4), np.uint8)
    pixels[..., 0] = 200
    pixels[1, :, 3], pixels[2, :, 3] = 128, 255
    read = decode(encoded(Image.fromarray(pixels)), LIMITS).astype(int)
    assert (read[0] == 255).all()
    assert np.abs(read[1] - [227, 127, 127]).max() <= 1
    assert (read[2] == [200, 0, 0]).all()


@pytest.mark.parametrize("mode", ["LA", "P", "RGB"])
def test_transparency_of_other_kinds_hides_too(mode: str) -> None:
    if mode == "LA":
        data = encoded(Image.merge("LA", (Image.new("L", (4, 4), 9), Image.new("L", (4, 4), 0))))
    elif mode == "P":
        data = encoded(Image.fromarray(picture(0, 4, 4)).quantize(8), transparency=bytes(8))
    else:
        data = encoded(Image.new("RGB", (4, 4), (1, 2, 3)), transparency=(1, 2, 3))
    assert (decode(data, LIMITS) == 255).all()


def test_sixteen_bits_keep_the_upper_eight() -> None:
    values = np.array([[0x0000, 0x1234, 0x80FF, 0xFFFF]], np.uint16)
    for form in ("PNG", "TIFF"):
        read = decode(encoded(Image.fromarray(values), form), LIMITS)
        assert read[0].tolist() == [[0x00] * 3, [0x12] * 3, [0x80] * 3, [0xFF] * 3]


@pytest.mark.parametrize("form", ["JPEG", "TIFF"])
def test_cmyk_shows_the_same_picture(form: str) -> None:
    image = Image.new("RGB", (32, 32), (200, 60, 20))
    options = {"quality": 98} if form == "JPEG" else {}
    read = decode(encoded(image.convert("CMYK"), form, **options), LIMITS).astype(int)
    assert np.abs(read - [200, 60, 20]).max() < 12


def test_a_colour_profile_is_applied() -> None:
    """D50 white and equal channels: a Lab-like linear profile would change greys; sRGB to sRGB must not."""
    image = Image.fromarray(picture(3, 20, 20))
    srgb = ImageCms.ImageCmsProfile(ImageCms.createProfile("sRGB")).tobytes()
    read = decode(encoded(image, icc_profile=srgb), LIMITS).astype(int)
    assert np.abs(read - np.asarray(image)).max() <= 2


def test_a_profile_with_swapped_primaries_changes_the_colours() -> None:
    profile = bytearray(ImageCms.ImageCmsProfile(ImageCms.createProfile("sRGB")).tobytes())
    red, blue = profile.index(b"rXYZ"), profile.index(b"bXYZ")
    profile[red : red + 4], profile[blue : blue + 4] = b"bXYZ", b"rXYZ"  # what is stored as red is shown as blue
    read = decode(encoded(Image.new("RGB", (8, 8), (255, 0, 0)), icc_profile=bytes(profile)), LIMITS).astype(int)
    assert np.abs(read - [0, 0, 255]).max() <= 3


def test_a_profile_that_is_none_is_ignored() -> None:
    image = Image.fromarray(picture(3, 20, 20))
    assert (decode(encoded(image, icc_profile=b"nothing" * 30), LIMITS) == np.asarray(image)).all()


def reason(data: bytes, limits: Limits = LIMITS) -> str:
    with pytest.raises(RefusedImage) as refusal:
        decode(data, limits)
    return refusal.value.reason


def test_refusals_say_why() -> None:
    image = Image.fromarray(picture(0, 40, 40))
    whole = encoded(image)
    assert "not a picture" in reason(b"<html>")
    assert "not a picture" in reason(encoded(image, "PPM"))
    assert "damaged" in reason(whole[: len(whole) // 2])
    assert "too large: 200x100" in reason(encoded(Image.new("L", (200, 100))), SMALL)
    assert "several pages (2)" in reason(encoded(image, "TIFF", save_all=True, append_images=[image]))
    assert "'F'" in reason(encoded(Image.fromarray(np.zeros((4, 4), np.float32)), "TIFF"))


def test_every_way_of_cutting_a_picture_off_is_refused_or_harmless() -> None:
    """A cut that leaves out pixels must be refused; only one that leaves out the end mark may pass."""
    pixels = picture(1, 24, 24)
    for form in FORMATS:
        options = {"WEBP": {"lossless": True}}.get(form, {})
        whole = encoded(Image.fromarray(pixels), form, **options)
        shown = decode(whole, LIMITS)
        for length in range(0, len(whole), max(1, len(whole) // 60)):
            try:
                assert (decode(whole[:length], LIMITS) == shown).all()
            except RefusedImage:
                continue


def test_bombs_are_refused_before_they_unpack() -> None:
    for name, data in hostile.bombs():
        try:
            assert decode(data, SMALL).size <= 3 * SMALL.pixels, name
        except RefusedImage:
            continue


@pytest.mark.parametrize("form", FORMATS)
def test_our_limit_counts_where_pillows_own_is_lower(form: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """As with --max-pixels above 179 million, but in small: Pillow refuses what is twice as large as its limit."""
    monkeypatch.setattr(Image, "MAX_IMAGE_PIXELS", 100)
    data = encoded(Image.fromarray(picture(0, 40, 40)), form)
    with pytest.raises(Image.DecompressionBombError):
        Image.open(io.BytesIO(data)).load()
    assert decode(data, Limits(pixels=1_600)).shape == (40, 40, 3)
    assert "too large: 40x40 pixels, at most 1599" in reason(data, Limits(pixels=1_599))
    assert Image.MAX_IMAGE_PIXELS == 100


def test_a_limit_above_pillows_own_is_named_in_the_refusal() -> None:
    header = struct.pack(">IIBBBBB", 20_000, 20_000, 8, 0, 0, 0, 0)
    chunks = ((b"IHDR", header), (b"IDAT", zlib.compress(b"")), (b"IEND", b""))
    data = b"\x89PNG\r\n\x1a\n" + b"".join(
        struct.pack(">I", len(part)) + name + part + struct.pack(">I", zlib.crc32(name + part))
        for name, part in chunks
    )
    assert "20000x20000 pixels, at most 300000000" in reason(data, Limits(pixels=300_000_000))


def test_a_small_jpeg_that_claims_to_be_large_is_refused_and_a_flat_one_is_not() -> None:
    lying = dict(hostile.bombs())["lying5000.jpg"]
    assert "truncated" in reason(lying)
    flat = encoded(Image.new("L", (2_000, 2_000), 128), "JPEG", optimize=True, quality=1)
    assert decode(flat, LIMITS).shape == (2_000, 2_000, 3)


def test_files_that_are_no_files(tmp_path: Path) -> None:
    def why(file: Path, limits: Limits = LIMITS) -> str:
        with pytest.raises(RefusedImage) as refusal:
            read_bytes(file, limits)
        assert file.name not in refusal.value.reason
        return refusal.value.reason

    os.mkfifo(tmp_path / "pipe.jpg")
    (tmp_path / "zero.jpg").symlink_to("/dev/zero")
    (tmp_path / "itself.jpg").symlink_to("itself.jpg")
    (tmp_path / "empty.jpg").touch()
    (tmp_path / "big.jpg").write_bytes(bytes(100))
    assert why(tmp_path / "pipe.jpg") == why(tmp_path / "zero.jpg") == why(tmp_path) == "not a regular file"
    assert "cannot be opened" in why(tmp_path / "itself.jpg")
    assert "cannot be opened" in why(tmp_path / "absent.jpg")
    assert "empty" in why(tmp_path / "empty.jpg")
    assert "too large: 100 bytes" in why(tmp_path / "big.jpg", Limits(file_bytes=99))
    assert read_bytes(tmp_path / "big.jpg", Limits(file_bytes=100)) == bytes(100)


def test_reasons_hold_nothing_of_the_file() -> None:
    secret = "canary0123456789"
    buffer = io.BytesIO()
    Image.new("RGB", (4, 4)).save(buffer, "PNG")
    for data in (secret.encode(), buffer.getvalue()[:40] + secret.encode(), b"BM" + secret.encode() * 9):
        assert secret not in reason(data)


VALUE = 47_113


def telling_tiff() -> bytes:
    """A TIFF that claims so many samples a pixel that Pillow logs the number as an error."""
    tags = ((256, 4), (257, 4), (258, 8), (259, 1), (262, 1), (273, 8), (277, VALUE), (278, 4), (279, 16))
    entries = b"".join(struct.pack("<HHII", tag, 4, 1, value) for tag, value in tags)
    return struct.pack("<2sHIH", b"II", 42, 8, len(tags)) + entries + bytes(20)


def test_loggers_and_warnings_say_nothing_of_a_damaged_tiff(
    caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    with caplog.at_level(logging.DEBUG), warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        with pytest.raises(RefusedImage) as refusal:
            decode(telling_tiff(), Limits())
        logging.getLogger("PIL").error("heard again")
    assert [record.message for record in caplog.records] == ["heard again"]
    assert not warned
    assert str(VALUE) not in refusal.value.reason + "".join(capfd.readouterr())


@pytest.mark.parametrize("workers", [0, 1])
def test_a_run_says_nothing_of_a_damaged_tiff(
    tmp_path: Path, workers: int, capfd: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "source").mkdir()
    (tmp_path / "source" / "a.tif").write_bytes(telling_tiff())
    outcome = protect(tmp_path / "source", tmp_path / "release", "mask", workers=workers)
    assert sum(outcome.refused.values()) == 1
    assert str(VALUE) not in "".join(capfd.readouterr())
