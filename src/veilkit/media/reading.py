"""Reading a picture that somebody else made: nothing in it is trusted, and only its visible pixels survive."""

from __future__ import annotations

import hashlib
import io
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageOps, UnidentifiedImageError

from veilkit.errors import RefusedImage
from veilkit.media.colours import Coding, shown_colours
from veilkit.media.silence import silent_libraries, silent_terminal

FORMATS = ("JPEG", "PNG", "WEBP", "BMP", "TIFF")
_JPEG_PIXELS_PER_BYTE = 512  # Huffman codes take at least one bit for each 8x8 block


@dataclass(frozen=True, slots=True)
class Limits:
    """What is read, and what may be spent on it.

    file_bytes: the largest file. pixels: the largest picture. side: its longest side; OpenCV counts in 16 bits.
    aspect: how many times the shorter side the longer one may be. A line of pixels shows nobody, but costs some
    methods as much as a picture that is as high as it is long. seconds: processor time for a picture, and memory:
    bytes of a worker process (None: 80 % of the machine's). These two count in worker processes alone.
    """

    file_bytes: int = 256 * 2**20
    pixels: int = 50_000_000
    side: int = 32_767
    aspect: int = 100
    seconds: int = 1_800
    memory: int | None = None


def read_bytes(file: Path, limits: Limits) -> bytes:
    """The bytes of a regular file within the limits."""
    try:
        descriptor = os.open(file, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)  # a pipe must not block the run
    except OSError as error:
        raise RefusedImage(f"cannot be opened: {error.strerror}") from None
    status = os.fstat(descriptor)
    if not stat.S_ISREG(status.st_mode):
        os.close(descriptor)
        raise RefusedImage("not a regular file")
    with os.fdopen(descriptor, "rb") as opened:
        if status.st_size == 0:
            raise RefusedImage("empty file (0 bytes)")
        if status.st_size > limits.file_bytes:
            raise RefusedImage(f"file too large: {status.st_size} bytes, at most {limits.file_bytes} are read")
        try:
            return opened.read(limits.file_bytes + 1)
        except OSError as error:
            raise RefusedImage(f"cannot be read: {error.strerror}") from None


def decode(data: bytes, limits: Limits) -> NDArray[np.uint8]:
    """The visible pixels of an encoded picture as HWC uint8 RGB, upright, in sRGB, transparency over white.

    Raises RefusedImage for whatever cannot be shown to be one whole picture of at most `limits.pixels`.
    """
    with silent_libraries(), _pillow_up_to(limits.pixels):
        try:
            with Image.open(io.BytesIO(data), formats=FORMATS) as image:
                # A JPEG decoder fills in grey for what is missing: a kilobyte may claim to be 25 million pixels.
                if image.format == "JPEG" and image.width * image.height > _JPEG_PIXELS_PER_BYTE * len(data):
                    raise RefusedImage("damaged or truncated picture")
                return _visible_pixels(image, limits)
        except RefusedImage:
            raise
        except UnidentifiedImageError:
            raise RefusedImage(f"not a picture in one of the formats {', '.join(FORMATS)}") from None
        except Image.DecompressionBombError:
            raise RefusedImage(f"picture too large: at most {limits.pixels} pixels are read") from None
        except MemoryError:
            raise RefusedImage("there is not enough memory to read it: give it more, or a smaller picture") from None
        except Exception:  # whatever a decoder raises on damaged input; its words may hold values of the file
            raise RefusedImage("damaged or truncated picture") from None


def sha256(data: bytes) -> str:
    """The hash (hexadecimal) by which files are compared."""
    return hashlib.sha256(data).hexdigest()


def _visible_pixels(image: Image.Image, limits: Limits) -> NDArray[np.uint8]:
    _check_size(*image.size, limits)
    frames = getattr(image, "n_frames", 1)
    if frames > 1 and image.format != "MPO":  # a JPEG of a phone, with a preview or a second view behind the picture
        raise RefusedImage(f"animated or of several pages ({frames}): split it into single pictures first")
    coding = Coding.of(image)
    with silent_terminal() if image.format == "TIFF" else nullcontext():
        image.load()
    ImageOps.exif_transpose(image, in_place=True)
    return shown_colours(image, coding)


def _check_size(width: int, height: int, limits: Limits) -> None:
    """Raise where a picture claims to be larger than the limits: before anything of it is unpacked."""
    size = f"{width}x{height} pixels"
    if width * height > limits.pixels:
        raise RefusedImage(f"picture too large: {size}, at most {limits.pixels} are read")
    if max(width, height) > limits.side:
        raise RefusedImage(f"picture too long: {size}, a side of at most {limits.side} is read")
    if max(width, height) > limits.aspect * min(width, height):
        raise RefusedImage(f"picture too narrow: {size}, a side is read up to {limits.aspect} times the other")


@contextmanager
def _pillow_up_to(pixels: int) -> Iterator[None]:
    """Let Pillow read pictures of so many pixels; its own limit, a variable of its module, may be lower."""
    kept = Image.MAX_IMAGE_PIXELS
    Image.MAX_IMAGE_PIXELS = None if kept is None else max(kept, pixels)
    try:
        yield
    finally:
        Image.MAX_IMAGE_PIXELS = kept
