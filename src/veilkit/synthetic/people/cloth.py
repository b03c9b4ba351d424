"""The look of cloth: patterns over the surface, and prints on chest and back."""

from __future__ import annotations

from functools import lru_cache

import cv2
import numpy as np

from veilkit.synthetic.arrays import Floats
from veilkit.synthetic.colours import linear
from veilkit.synthetic.people.canvas import Material, Spots
from veilkit.synthetic.people.identity import Cloth

_GLYPH_SIZE = 48


def plain(colour: tuple[float, float, float]) -> Material:
    """One colour everywhere."""
    tint = linear(colour)
    return lambda spots: np.broadcast_to(tint, (spots.around.size, 3)).astype(np.float32)


def _wave(phase: Floats, share: float) -> Floats:
    """1 within the first `share` of each period, 0 after it."""
    return np.asarray(phase - np.floor(phase) < share, np.float32)


def _camouflage(spots: Spots, scale: float) -> Floats:
    u, v = spots.side * scale, spots.down * scale
    field = np.sin(1.9 * u + 1.3 * np.sin(1.1 * v)) + np.sin(1.7 * v + 1.6 * np.sin(0.9 * u + 1.0))
    return np.asarray((field > 0.5) * 1.0 + (field < -0.7) * 0.5, np.float32)


def share_of_second(cloth: Cloth, spots: Spots) -> Floats:
    """How much of the second colour the pattern shows at each spot (N,), in [0, 1]."""
    scale = cloth.scale
    match cloth.pattern:
        case "stripes":
            return _wave(spots.down * scale, 0.42)
        case "bars":
            return _wave(spots.side * scale * 1.2, 0.3)
        case "checks":
            return 0.5 * _wave(spots.down * scale, 0.5) + 0.5 * _wave(spots.side * scale, 0.5)
        case "dots":
            u, v = spots.side * scale * 1.3, spots.down * scale * 1.3
            u = u + 0.5 * (np.floor(v) % 2)
            return np.asarray(np.hypot(u - np.floor(u) - 0.5, v - np.floor(v) - 0.5) < 0.27, np.float32)
        case "block":
            return np.asarray(spots.down < 0.06 + 0.004 * scale, np.float32)
        case "halves":
            return np.asarray(spots.side > 0, np.float32)
        case "band":
            return np.asarray(np.abs(spots.down - 0.14) < 0.02 + 0.0012 * scale, np.float32)
        case "gradient":
            return np.asarray(np.clip(spots.down * 3.2, 0, 1), np.float32)
        case "camouflage":
            return _camouflage(spots, scale * 3.0)
        case _:
            return np.zeros_like(spots.down)


@lru_cache(maxsize=64)
def glyph(index: int) -> Floats:
    """The mask (48, 48) in [0, 1] of print number `index`: letters, shapes, and symmetric block figures."""
    size = _GLYPH_SIZE
    picture = np.zeros((size, size), np.uint8)
    centre = (size // 2, size // 2)
    if index < 8:
        text = ("K", "R8", "77", "Z", "AX", "B", "10", "M")[index]
        (wide, high), _ = cv2.getTextSize(text, cv2.FONT_HERSHEY_DUPLEX, 1.0, 5)
        factor = 40 / max(wide, high)
        (wide, high), _ = cv2.getTextSize(text, cv2.FONT_HERSHEY_DUPLEX, factor, 6)
        at = ((size - wide) // 2, (size + high) // 2)
        cv2.putText(picture, text, at, cv2.FONT_HERSHEY_DUPLEX, factor, 255, 6, cv2.LINE_AA)
    elif index == 8:
        cv2.circle(picture, centre, 17, 255, 7, cv2.LINE_AA)
    elif index == 9:
        cv2.circle(picture, centre, 20, 255, -1, cv2.LINE_AA)
    elif index == 10:
        cv2.fillPoly(picture, [np.array([(24, 3), (45, 42), (3, 42)])], 255, cv2.LINE_AA)
    elif index == 11:
        turns = np.arange(10) * np.pi / 5 - np.pi / 2
        radii = np.where(np.arange(10) % 2, 9, 23)
        star = np.stack([24 + radii * np.cos(turns), 24 + radii * np.sin(turns)], axis=1)
        cv2.fillPoly(picture, [star.astype(np.int32)], 255, cv2.LINE_AA)
    elif index == 12:
        cv2.rectangle(picture, (2, 12), (45, 35), 255, -1)
    elif index == 13:
        cv2.fillPoly(
            picture, [np.array([(30, 2), (8, 28), (22, 28), (16, 46), (40, 18), (26, 18)])], 255, cv2.LINE_AA
        )
    elif index == 14:
        for top in (4, 20, 36):
            cv2.rectangle(picture, (2, top), (45, top + 8), 255, -1)
    elif index == 15:
        cv2.rectangle(picture, (18, 2), (30, 46), 255, -1)
        cv2.rectangle(picture, (2, 18), (46, 30), 255, -1)
    else:
        half = np.random.Generator(np.random.PCG64(index)).random((5, 3)) < 0.55
        figure = np.concatenate([half, half[:, 1::-1]], axis=1).astype(np.uint8) * 255
        cells = np.arange(size) * 5 // size
        picture = figure[cells][:, cells]
    return (picture / np.float32(255)).astype(np.float32)


def _print(cloth: Cloth, spots: Spots, chest: bool) -> Floats:
    """The mask (N,) of the print: large on the back, as drawn on the chest; small prints sit on one side."""
    if cloth.glyph is None:
        return np.zeros_like(spots.down)
    facing = np.abs(spots.around) < np.pi / 2
    size = np.where(facing, cloth.print_size, max(cloth.print_size, 0.09)).astype(np.float32)
    away = np.where(spots.around > 0, np.float32(np.pi), np.float32(-np.pi))
    radius = spots.side / np.where(np.abs(spots.around) < 1e-3, 1e-3, spots.around)
    across = np.where(facing, spots.side, (spots.around - away) * radius)
    shift = np.where(facing & (cloth.print_size < 0.06), np.float32(0.045), np.float32(0.0))
    j = ((across - shift) / size + 0.5) * _GLYPH_SIZE
    i = ((spots.down - 0.115) / size + 0.5) * _GLYPH_SIZE
    hit = (i >= 0) & (i < _GLYPH_SIZE) & (j >= 0) & (j < _GLYPH_SIZE)
    if not chest:
        hit &= ~facing
    mask = np.zeros_like(spots.down)
    mask[hit] = glyph(cloth.glyph)[i[hit].astype(np.int32), j[hit].astype(np.int32)]
    return mask


def woven(cloth: Cloth, *, prints: bool = False, chest: bool = True) -> Material:
    """The material of `cloth`; with `prints`, its logo on the back and (with `chest`) in front."""
    first, second, ink = linear(cloth.colour), linear(cloth.second), linear(cloth.print_colour)

    def material(spots: Spots) -> Floats:
        mix = share_of_second(cloth, spots)[:, None]
        colour = first + (second - first) * mix
        if prints and cloth.glyph is not None:
            colour = colour + (ink - colour) * _print(cloth, spots, chest)[:, None]
        return colour.astype(np.float32)

    return material
