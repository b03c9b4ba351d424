"""Colours of pictures that are seldom met, against values known from their formats' definitions."""

from __future__ import annotations

import io
import struct
import zlib

import numpy as np
import pytest
from PIL import Image, ImageCms

import hostile
from pictures import picture
from veilkit.media.reading import Limits, decode

LIMITS = Limits()
WHITE = [255, 255, 255]


def shown(data: bytes) -> list[list[list[int]]]:
    return decode(data, LIMITS).tolist()


def grey(*values: int) -> list[list[int]]:
    return [[value] * 3 for value in values]


def swapped_profile() -> bytes:
    """sRGB with its red and blue primaries exchanged: what is stored as red is shown as blue."""
    profile = bytearray(ImageCms.ImageCmsProfile(ImageCms.createProfile("sRGB")).tobytes())
    red, blue = profile.index(b"rXYZ"), profile.index(b"bXYZ")
    profile[red : red + 4], profile[blue : blue + 4] = b"bXYZ", b"rXYZ"
    return bytes(profile)


def iccp() -> bytes:
    return hostile.png_chunk(b"iCCP", b"swapped\0\0" + zlib.compress(swapped_profile()))


def grey_tiff(width: int, bits: int, photometric: int, row: bytes) -> bytes:
    """A TIFF of one row of grey values, little-endian; its values lie behind the directory."""
    tags = ((256, width), (257, 1), (258, bits), (259, 1), (262, photometric), (277, 1), (278, 1), (279, len(row)))
    offset = 8 + 2 + 12 * (len(tags) + 1) + 4
    entries = sorted((*tags, (273, offset)))
    directory = b"".join(struct.pack("<HHII", tag, 4, 1, value) for tag, value in entries)
    return struct.pack("<2sHIH", b"II", 42, 8, len(entries)) + directory + bytes(4) + row


def twelve_bits(*values: int) -> bytes:
    """Values of 12 bits, packed one after the other from the highest bit."""
    return int("".join(f"{value:012b}" for value in values), 2).to_bytes(len(values) * 12 // 8, "big")


def test_a_twelve_bit_tiff_is_as_bright_as_it_was_stored() -> None:
    row = twelve_bits(0x000, 0x123, 0x80F, 0xFFF)
    assert shown(grey_tiff(4, 12, 1, row)) == [grey(0x00, 0x12, 0x80, 0xFF)]


def test_a_sixteen_bit_tiff_whose_zero_is_white_is_no_negative() -> None:
    row = np.array([0x0000, 0x1234, 0x80FF, 0xFFFF], "<u2").tobytes()
    assert shown(grey_tiff(4, 16, 0, row)) == [grey(0xFF, 0xED, 0x7F, 0x00)]
    assert shown(grey_tiff(4, 16, 1, row)) == [grey(0x00, 0x12, 0x80, 0xFF)]


def test_a_hidden_colour_stays_hidden_beside_a_profile() -> None:
    row = zlib.compress(b"\0" + bytes([255, 0, 0, 0, 255, 0, 0, 0, 255]))
    hidden = hostile.png_chunk(b"tRNS", struct.pack(">HHH", 255, 0, 0))
    first, second, third = np.array(shown(hostile.png(3, 1, row, iccp(), hidden))[0])
    assert first.tolist() == WHITE
    assert np.abs(second - [0, 255, 0]).max() <= 3
    assert np.abs(third - [255, 0, 0]).max() <= 3  # the profile's own doing


@pytest.mark.parametrize("key", [0x1234, 0x00FF, 0xFFFF])
def test_a_hidden_value_of_a_sixteen_bit_grey_picture_is_white(key: int) -> None:
    values = [0x1234, 0x1235, 0x00FF, 0xFFFF, 0x8000]
    row = zlib.compress(b"\0" + struct.pack(">5H", *values))
    data = hostile.png(5, 1, row, hostile.png_chunk(b"tRNS", struct.pack(">H", key)), depth=16, colour=0)
    assert shown(data) == [grey(*(255 if value == key else value >> 8 for value in values))]


def test_a_hidden_colour_of_sixteen_bits_a_channel_is_white() -> None:
    colours = [(0x1234, 0x8000, 0x0001), (0x2234, 0x8000, 0x0001)]
    row = zlib.compress(b"\0" + b"".join(struct.pack(">HHH", *colour) for colour in colours))
    data = hostile.png(2, 1, row, hostile.png_chunk(b"tRNS", struct.pack(">HHH", *colours[0])), depth=16)
    assert shown(data) == [[WHITE, [0x22, 0x80, 0x00]]]


@pytest.mark.parametrize(
    ("depth", "packed", "hidden", "expected"),
    [(1, 0b01000000, 0, (255, 255)), (2, 0b00011011, 1, (0, 255, 170, 255)), (4, 0x01, 1, (0, 255))],
)
def test_a_hidden_value_of_fewer_bits_is_white(
    depth: int, packed: int, hidden: int, expected: tuple[int, ...]
) -> None:
    key = hostile.png_chunk(b"tRNS", struct.pack(">H", hidden))
    data = hostile.png(len(expected), 1, zlib.compress(bytes([0, packed])), key, depth=depth, colour=0)
    assert shown(data) == [grey(*expected)]


def test_the_profile_of_a_palette_picture_is_applied() -> None:
    palette = hostile.png_chunk(b"PLTE", bytes([255, 0, 0, 0, 255, 0]))
    data = hostile.png(2, 1, zlib.compress(bytes([0, 0, 1])), iccp(), palette, depth=8, colour=3)
    first, second = np.array(shown(data)[0])
    assert np.abs(first - [0, 0, 255]).max() <= 3
    assert np.abs(second - [0, 255, 0]).max() <= 3


def test_the_profile_of_a_palette_picture_does_not_show_what_is_hidden() -> None:
    palette = hostile.png_chunk(b"PLTE", bytes([255, 0, 0, 0, 255, 0]))
    hidden = hostile.png_chunk(b"tRNS", bytes([0]))
    data = hostile.png(2, 1, zlib.compress(bytes([0, 0, 1])), iccp(), palette, hidden, depth=8, colour=3)
    first, second = np.array(shown(data)[0])
    assert first.tolist() == WHITE
    assert np.abs(second - [0, 255, 0]).max() <= 3


def test_a_picture_of_several_strips_is_blended_as_one() -> None:
    """Larger than what is worked on at once; against the textbook formula for a picture over white."""
    pixels = picture(0, 1100, 1000)
    alpha = np.add.outer(np.arange(1100), np.arange(1000)).astype(np.uint8)
    buffer = io.BytesIO()
    Image.fromarray(np.dstack([pixels, alpha])).save(buffer, "PNG", compress_level=1)
    share = alpha[..., None] / 255
    expected = pixels * share + 255 * (1 - share)
    assert np.abs(decode(buffer.getvalue(), LIMITS) - expected).max() <= 1
