"""The colours that a viewer would show of a decoded picture: 8-bit sRGB, transparency over white."""

from __future__ import annotations

import io
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageCms

from veilkit.errors import RefusedImage

_EIGHT_BIT = frozenset(
    {"1", "L", "LA", "La", "P", "PA", "RGB", "RGBA", "RGBa", "RGBX", "CMYK", "YCbCr", "LAB", "HSV"}
)
_SIXTEEN_BIT = frozenset({"I;16", "I;16L", "I;16B", "I;16N"})
_TRANSPARENT = ("RGBA", "RGBa", "LA", "La", "PA")
_STRIP = 2**20  # pixels worked on at once
_BITS_PER_SAMPLE, _PHOTOMETRIC = 258, 262  # tags of TIFF
_WHITE_IS_ZERO = 0
_SCALED = {"L;2": 85, "L;4": 17}  # grey values of 2 and 4 bits, as Pillow spreads them over 8

Convert: TypeAlias = Callable[[Image.Image], Image.Image]


@dataclass(frozen=True, slots=True)
class Coding:
    """How an opened file codes its values; to be taken before its pixels are loaded.

    bits: of a grey value in a 16-bit picture. inverted: whether its 0 is white. key: the colour that stands for full
    transparency, as `Image.load` will show it. profile: the ICC profile.
    """

    bits: int
    inverted: bool
    key: tuple[int, ...] | None
    profile: bytes | None

    @classmethod
    def of(cls, image: Image.Image) -> Coding:
        """The coding of a picture that was opened, and not yet loaded."""
        tags = getattr(image, "tag_v2", {})
        bits, *_ = tags.get(_BITS_PER_SAMPLE, (16,))
        inverted = tags.get(_PHOTOMETRIC) == _WHITE_IS_ZERO
        return cls(int(bits), inverted, _transparent_colour(image), image.info.get("icc_profile"))


def shown_colours(image: Image.Image, coding: Coding) -> NDArray[np.uint8]:
    """HWC uint8 RGB in sRGB of a loaded picture; what is hidden by transparency is white.

    Works on one strip after the other, so that it needs little more memory than the picture and the result.
    """
    if image.mode not in _SIXTEEN_BIT | _EIGHT_BIT:
        raise RefusedImage(f"pixels of the kind {image.mode!r} have no known range: convert to 8 or 16 bits first")
    width, height = image.size
    to_srgb = _to_srgb(coding.profile, _colour_mode(image))
    shown = np.empty((height, width, 3), np.uint8)
    rows = max(1, _STRIP // width)
    for top in range(0, height, rows):
        strip = image.crop((0, top, width, min(top + rows, height)))
        shown[top : top + rows] = _over_white(*_colours_and_alpha(strip, coding), to_srgb)
    return shown


def _transparent_colour(image: Image.Image) -> tuple[int, ...] | None:
    """The colour that a PNG's tRNS chunk names, in the values of the loaded picture; palettes keep their own."""
    key = image.info.get("transparency")
    if key is None or image.mode in ("P", "PA"):
        return None
    tiles = getattr(image, "tile", None)
    raw = tiles[0].args if tiles else ""
    values = (key,) if isinstance(key, int) else tuple(key)
    if raw == "RGB;16B":  # only the upper bytes are loaded: colours that share them with the hidden one go too
        return tuple(value >> 8 for value in values)
    return tuple(value * _SCALED.get(str(raw), 1) for value in values)


def _colours_and_alpha(strip: Image.Image, coding: Coding) -> tuple[Image.Image, Image.Image | None]:
    """A strip as L, RGB or CMYK without transparency, and its alpha if it has any."""
    if strip.mode in _SIXTEEN_BIT:
        values = np.asarray(strip).astype(np.uint16)
        alpha = _hiding(values == coding.key[0]) if coding.key else None
        if coding.inverted:
            values = np.uint16(2**coding.bits - 1) - values
        upper = np.minimum(values >> (coding.bits - 8), 255).astype(np.uint8)
        return Image.fromarray(upper), alpha
    if strip.mode in _TRANSPARENT or (strip.mode == "P" and "transparency" in strip.info):
        whole = strip.convert("RGBA")
        colours = whole.convert("RGB")
        return (colours.getchannel(0) if strip.mode in ("LA", "La") else colours), whole.getchannel("A")
    alpha = None
    if coding.key:
        values = np.asarray(strip.convert("L") if strip.mode == "1" else strip)
        alpha = _hiding((values.reshape(*values.shape[:2], -1) == np.array(coding.key)).all(axis=2))
        strip.info.pop("transparency", None)
    return strip.convert(_colour_mode(strip)), alpha


def _colour_mode(image: Image.Image) -> str:
    """The mode of its colours, before a profile is applied."""
    if image.mode == "CMYK":
        return "CMYK"
    return "L" if image.mode in ("1", "L", "LA", "La", *_SIXTEEN_BIT) else "RGB"


def _hiding(hidden: NDArray[np.bool_]) -> Image.Image:
    return Image.fromarray(np.where(hidden, np.uint8(0), np.uint8(255)))


def _to_srgb(profile: bytes | None, mode: str) -> Convert:
    """From L, RGB or CMYK to the RGB that viewers show. Like them, it ignores a profile that cannot be applied."""
    if profile is not None:
        try:
            source = ImageCms.ImageCmsProfile(io.BytesIO(profile))
            transform = ImageCms.buildTransform(source, ImageCms.createProfile("sRGB"), mode, "RGB")
        except (ImageCms.PyCMSError, OSError, ValueError, TypeError, AttributeError):
            pass
        else:
            return lambda colours: ImageCms.applyTransform(colours, transform) or colours.convert("RGB")
    return lambda colours: colours.convert("RGB")


def _over_white(colours: Image.Image, alpha: Image.Image | None, to_srgb: Convert) -> NDArray[np.uint8]:
    shown = to_srgb(colours)
    if alpha is not None:
        shown.putalpha(alpha)
        shown = Image.alpha_composite(Image.new("RGBA", shown.size, "white"), shown).convert("RGB")
    return np.asarray(shown)
