"""Writing a protected picture: 8-bit pixels and nothing else, under its final name only when complete."""

from __future__ import annotations

import errno
import io
import os
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, TypeAlias

import numpy as np
import torch
from numpy.typing import NDArray
from PIL import Image
from torch import Tensor

from veilkit.errors import DestinationError
from veilkit.media.reading import Frames

Format: TypeAlias = Literal["png", "jpeg"]
SUFFIX: dict[Format, str] = {"png": ".png", "jpeg": ".jpg"}
JPEGS = (".jpg", ".jpeg", ".jpe", ".jfif")
QUALITY = 95  # of a JPEG, unless told otherwise
_STRIP = 512  # rows
_TIME = 315_532_800  # 1 January 1980, UTC: the first that every archive can hold


def to_pixels(image: Tensor) -> NDArray[np.uint8]:
    """A float CHW image in [0, 1] as HWC uint8, rounded to the nearest value."""
    pixels = torch.empty(*image.shape[1:], 3, dtype=torch.uint8)
    for top in range(0, len(pixels), _STRIP):  # bounds the memory
        values = image[:, top : top + _STRIP].mul(255).round_().clamp_(0, 255)
        pixels[top : top + _STRIP].copy_(values.permute(1, 2, 0))
    whole: NDArray[np.uint8] = pixels.numpy()
    return whole


@dataclass(frozen=True, slots=True)
class Files:
    """How pictures are written: as PNG, as JPEG, or as JPEG what was JPEG and the rest as PNG (`auto`)."""

    form: Literal["auto", "png", "jpeg"] = "png"
    quality: int = QUALITY

    def suffix(self, path: str) -> str:
        """Of the file that the picture `path` becomes.

        >>> [Files("auto").suffix(path) for path in ("a.JPG", "b.webp")]
        ['.jpg', '.png']
        """
        jpeg = self.form == "jpeg" or (self.form == "auto" and path.lower().endswith(JPEGS))
        return SUFFIX["jpeg" if jpeg else "png"]

    def __str__(self) -> str:
        return self.form + ("" if self.quality == QUALITY else f" quality {self.quality}")


def encode(
    pixels: NDArray[np.uint8], image_format: Format, *, compressed: bool = True, quality: int = QUALITY
) -> bytes:
    """An image file of HWC uint8 RGB pixels, without metadata. A PNG that is not compressed is as large as others."""
    buffer = io.BytesIO()
    image = Image.fromarray(pixels)
    if image_format == "png":
        image.save(buffer, "PNG", **({} if compressed else {"compress_level": 0}))
    else:
        image.save(buffer, "JPEG", quality=quality, subsampling=0)
    return buffer.getvalue()


def encode_frames(frames: Frames, image_format: Format | Literal["tiff"]) -> bytes:
    """One file of several pictures: an animated PNG, or a TIFF of as many pages. Without metadata, as `encode`."""
    first, *rest = (Image.fromarray(pixels) for pixels in frames.pictures)
    buffer = io.BytesIO()
    if image_format == "tiff":
        first.save(buffer, "TIFF", save_all=True, append_images=rest, compression="tiff_adobe_deflate")
    else:
        durations = list(frames.durations or ())
        first.save(buffer, "PNG", save_all=True, append_images=rest, duration=durations, loop=frames.loop)
    return buffer.getvalue()


def too_long(file: Path) -> bool:
    """Whether a path is longer than the system can open."""
    try:
        os.lstat(file)
    except OSError as error:
        return error.errno == errno.ENAMETOOLONG
    return False


def undate(file: Path) -> None:
    """Give a file of a release the one time that all of them have: when each was made would tell their order."""
    os.utime(file, (_TIME, _TIME))


def write_atomically(
    target: Path, data: bytes, scratch: Path, *, durable: bool = False, undated: bool = False
) -> None:
    """Write `data` to `target` through a file in `scratch` (same file system): all of it or nothing is seen.

    durable: wait until the disk has it. Not for each picture: a resumed run checks their hashes instead.
    undated: see `undate`.
    """
    temporary = scratch / f"{os.getpid()}.part"
    try:
        with temporary.open("wb") as out:
            out.write(data)
            if durable:
                out.flush()
                os.fsync(out.fileno())
        if undated:
            undate(temporary)
        target.parent.mkdir(parents=True, exist_ok=True)
        temporary.replace(target)
    except OSError as error:
        with suppress(OSError):
            temporary.unlink()
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            raise DestinationError("the disk is full: free some space and run the same command to go on") from None
        raise DestinationError(f"the destination cannot be written: {error.strerror}") from None
