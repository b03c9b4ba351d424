"""Reading a picture that somebody else made: nothing in it is trusted, and only its visible pixels survive."""

from __future__ import annotations

import hashlib
import importlib
import io
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageOps, UnidentifiedImageError, features

from veilkit.errors import MissingExtraError, RefusedImage
from veilkit.media.colours import Coding, shown_colours
from veilkit.media.dicom import DicomFile, is_dicom
from veilkit.media.silence import silent_libraries, silent_terminal

FORMATS = ("JPEG", "PNG", "WEBP", "BMP", "TIFF", "GIF")
_BRANDS = (b"heic", b"heix", b"heim", b"heis", b"hevc", b"hevx", b"mif1", b"msf1")  # of HEIC files
_AVIF = (b"avif", b"avis", b"mif1", b"msf1")
_ONE_SHOWN = ("MPO", "HEIF")  # of a phone, with a preview or a second view behind the picture that is shown
_FRAME = 100  # milliseconds, where a file does not say how long a frame is shown
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


@dataclass(frozen=True, slots=True, eq=False)
class Frames:
    """All pictures of one file, each HWC uint8 RGB. durations: milliseconds for each; None for pages, and for one.

    loop: how often an animation is shown; 0 for without end.
    """

    pictures: tuple[NDArray[np.uint8], ...]
    durations: tuple[int, ...] | None = None
    loop: int = 0

    def __len__(self) -> int:
        return len(self.pictures)


def decode(data: bytes, limits: Limits) -> NDArray[np.uint8]:
    """The visible pixels of an encoded picture as HWC uint8 RGB, upright, in sRGB, transparency over white.

    Raises RefusedImage for whatever cannot be shown to be one whole picture of at most `limits.pixels`.
    """
    return _decoded(data, limits, several=False).pictures[0]


def decode_frames(data: bytes, limits: Limits) -> Frames:
    """As `decode`, for files with several frames or pages too; all together have at most `limits.pixels`."""
    return _decoded(data, limits, several=True)


def _decoded(data: bytes, limits: Limits, *, several: bool) -> Frames:
    with silent_libraries(), _pillow_up_to(limits.pixels):
        try:
            if is_dicom(data):
                return _medical(DicomFile(data), limits, several=several)
            with Image.open(io.BytesIO(data), formats=_formats(data)) as image:
                # A JPEG decoder fills in grey for what is missing: a kilobyte may claim to be 25 million pixels.
                if image.format == "JPEG" and image.width * image.height > _JPEG_PIXELS_PER_BYTE * len(data):
                    raise RefusedImage("damaged or truncated picture")
                return _visible_pixels(image, limits, several=several)
        except RefusedImage:
            raise
        except UnidentifiedImageError:
            if data[4:12] in [b"ftyp" + brand for brand in _BRANDS] and "HEIF" not in Image.OPEN:
                raise RefusedImage(f"a HEIC picture: {MissingExtraError('pillow-heif', 'heic')}") from None
            raise RefusedImage(f"not a picture in one of the formats {', '.join(FORMATS)}, AVIF, HEIC") from None
        except Image.DecompressionBombError:
            raise RefusedImage(f"picture too large: at most {limits.pixels} pixels are read") from None
        except MemoryError:
            raise RefusedImage("there is not enough memory to read it: give it more, or a smaller picture") from None
        except Exception:  # whatever a decoder raises on damaged input; its words may hold values of the file
            raise RefusedImage("damaged or truncated picture") from None


def _formats(data: bytes) -> tuple[str, ...]:
    """The formats that a file may have, by its head; a decoder that is not needed is not even loaded."""
    if data[4:8] != b"ftyp":
        return FORMATS
    if data[8:12] in _BRANDS:
        try:
            importlib.import_module("pillow_heif").register_heif_opener()
        except ImportError:
            return ("AVIF",) if features.check("avif") else FORMATS
    return tuple(
        name for name in ("AVIF", "HEIF") if name in Image.OPEN or (name == "AVIF" and features.check("avif"))
    )


def _medical(file: DicomFile, limits: Limits, *, several: bool) -> Frames:
    check_size(file.width, file.height, limits)
    _check_frames(file.frames, file.width * file.height, limits, several=several)
    durations = (file.milliseconds,) * file.frames if file.frames > 1 else None
    return Frames(tuple(file.pictures()), durations)


def has_pages(file: Path) -> bool:
    """Whether a file is a TIFF of several pages, as its directories say; its pixels are not looked at."""
    if os.path.splitext(file)[1].lower() not in (".tif", ".tiff"):  # noqa: PTH122 - paths may hold bytes that are not text
        return False
    with silent_libraries(), silent_terminal(), suppress(Exception), Image.open(file, formats=("TIFF",)) as image:
        return int(getattr(image, "n_frames", 1)) > 1
    return False  # damaged: whoever reads it will say so


def sha256(data: bytes) -> str:
    """The hash (hexadecimal) by which files are compared."""
    return hashlib.sha256(data).hexdigest()


def _visible_pixels(image: Image.Image, limits: Limits, *, several: bool) -> Frames:
    check_size(*image.size, limits)
    count = 1 if image.format in _ONE_SHOWN else getattr(image, "n_frames", 1)
    _check_frames(count, image.width * image.height, limits, several=several)
    if count == 1:
        return Frames((_frame(image),))
    pictures, durations, left = [], [], limits.pixels
    # A PNG may hold a picture for those who cannot show its animation: whoever can never sees it.
    for number in range(int(bool(image.info.get("default_image"))), count):
        image.seek(number)
        check_size(*image.size, limits)
        left -= image.width * image.height  # pages may be of different sizes
        if left < 0:
            raise _too_many(count, limits)
        pictures.append(_frame(image))
        durations.append(max(1, round(image.info.get("duration", _FRAME) or _FRAME)))
    if image.format == "TIFF":
        return Frames(tuple(pictures))
    return Frames(tuple(pictures), tuple(durations), int(image.info.get("loop", 1)))


def _frame(image: Image.Image) -> NDArray[np.uint8]:
    """The picture that an opened file is at."""
    coding = Coding.of(image)
    with silent_terminal() if image.format == "TIFF" else nullcontext():
        image.load()
    if getattr(image, "is_animated", False) and image.format not in _ONE_SHOWN:
        return shown_colours(ImageOps.exif_transpose(image), coding)  # the file's own state must not change
    ImageOps.exif_transpose(image, in_place=True)
    return shown_colours(image, coding)


def _check_frames(count: int, pixels: int, limits: Limits, *, several: bool) -> None:
    if count > 1 and not several:
        raise RefusedImage(f"animated or of several pages ({count}): split it into single pictures first")
    if count * pixels > limits.pixels and count > 1:
        raise _too_many(count, limits)


def _too_many(count: int, limits: Limits) -> RefusedImage:
    return RefusedImage(
        f"too many frames or pages ({count}): at most {limits.pixels} pixels in all are read; split it, or allow more"
    )


def check_size(width: int, height: int, limits: Limits) -> None:
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
