"""Reading a picture that somebody else made: nothing in it is trusted, and only its visible pixels survive."""

from __future__ import annotations

import hashlib
import io
import os
import stat
import struct
import warnings
import zlib
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageCms, ImageOps, UnidentifiedImageError

from veilkit.errors import RefusedImage

FORMATS = ("JPEG", "PNG", "WEBP", "BMP", "TIFF")
_EIGHT_BIT = frozenset(
    {"1", "L", "LA", "La", "P", "PA", "RGB", "RGBA", "RGBa", "RGBX", "CMYK", "YCbCr", "LAB", "HSV"}
)
_SIXTEEN_BIT = frozenset({"I;16", "I;16L", "I;16B", "I;16N"})
_JPEG_PIXELS_PER_BYTE = 512  # Huffman codes take at least one bit for each 8x8 block
# What Pillow's decoders raise on damaged input, beside OSError and its own.
_DECODER_ERRORS = (OSError, SyntaxError, ValueError, TypeError, KeyError, IndexError, AttributeError, OverflowError)


@dataclass(frozen=True, slots=True)
class Limits:
    """The largest file (bytes) and picture (pixels) that is read; memory use is about 40 bytes a pixel."""

    file_bytes: int = 256 * 2**20
    pixels: int = 50_000_000


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
    with warnings.catch_warnings(), _pillow_up_to(limits.pixels):
        warnings.simplefilter("ignore")  # Pillow warns of odd metadata with texts taken from the file
        try:
            with Image.open(io.BytesIO(data), formats=FORMATS) as image:
                # A JPEG decoder fills in grey for what is missing: a kilobyte may claim to be 25 million pixels.
                if image.format == "JPEG" and image.width * image.height > _JPEG_PIXELS_PER_BYTE * len(data):
                    raise RefusedImage("damaged or truncated picture")
                return _visible_pixels(image, limits)
        except UnidentifiedImageError:
            raise RefusedImage(f"not a picture in one of the formats {', '.join(FORMATS)}") from None
        except (Image.DecompressionBombError, MemoryError):
            raise RefusedImage(f"picture too large: at most {limits.pixels} pixels are read") from None
        except (*_DECODER_ERRORS, EOFError, struct.error, zlib.error):
            raise RefusedImage("damaged or truncated picture") from None


def sha256(data: bytes) -> str:
    """The hash (hexadecimal) by which files are compared."""
    return hashlib.sha256(data).hexdigest()


def _visible_pixels(image: Image.Image, limits: Limits) -> NDArray[np.uint8]:
    width, height = image.size
    if width * height > limits.pixels:
        raise RefusedImage(f"picture too large: {width}x{height} pixels, at most {limits.pixels} are read")
    frames = getattr(image, "n_frames", 1)
    if frames > 1 and image.format != "MPO":  # a JPEG of a phone, with a preview or a second view behind the picture
        raise RefusedImage(f"animated or of several pages ({frames}): split it into single pictures first")
    profile = image.info.get("icc_profile")
    with _silence() if image.format == "TIFF" else nullcontext():
        image.load()
    ImageOps.exif_transpose(image, in_place=True)
    upright: Image.Image = image
    if image.mode in _SIXTEEN_BIT:
        values = np.asarray(image).astype(np.uint16)
        upright = Image.fromarray((values >> 8).astype(np.uint8))
    elif image.mode not in _EIGHT_BIT:
        raise RefusedImage(f"pixels of the kind {image.mode!r} have no known range: convert to 8 or 16 bits first")
    return np.array(_flat(_in_srgb(upright, profile)), dtype=np.uint8)


@contextmanager
def _pillow_up_to(pixels: int) -> Iterator[None]:
    """Let Pillow read pictures of so many pixels; its own limit, a variable of its module, may be lower."""
    kept = Image.MAX_IMAGE_PIXELS
    Image.MAX_IMAGE_PIXELS = None if kept is None else max(kept, pixels)
    try:
        yield
    finally:
        Image.MAX_IMAGE_PIXELS = kept


@contextmanager
def _silence() -> Iterator[None]:
    """Keep libtiff from writing values of a damaged file to the terminal, which it does past Python."""
    kept = os.dup(2)
    with Path(os.devnull).open("wb") as nowhere:
        os.dup2(nowhere.fileno(), 2)
    try:
        yield
    finally:
        os.dup2(kept, 2)
        os.close(kept)


def _in_srgb(image: Image.Image, profile: bytes | None) -> Image.Image:
    """The colours that a viewer would show; a profile that cannot be applied is ignored, as viewers do."""
    if profile is None or image.mode not in ("RGB", "RGBA", "CMYK", "L"):
        return image
    mode = "RGBA" if image.mode == "RGBA" else "RGB"
    try:
        source = ImageCms.ImageCmsProfile(io.BytesIO(profile))
        converted = ImageCms.profileToProfile(image, source, ImageCms.createProfile("sRGB"), outputMode=mode)
    except (ImageCms.PyCMSError, *_DECODER_ERRORS):
        return image
    return image if converted is None else converted


def _flat(image: Image.Image) -> Image.Image:
    """RGB without transparency: what is hidden is gone."""
    if image.mode not in ("RGBA", "RGBa", "LA", "La", "PA") and "transparency" not in image.info:
        return image if image.mode == "RGB" else image.convert("RGB")
    shown = image.convert("RGBA")
    return Image.alpha_composite(Image.new("RGBA", shown.size, "white"), shown).convert("RGB")
