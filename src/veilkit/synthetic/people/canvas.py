"""The canvas of a figure: how a body reaches the picture, a depth buffer of materials, and its light.

Body frame: x to the right of somebody facing the viewer, y up, z out of the chest; the unit is the body's stature.
Picture frame: x right, y down, z towards the viewer; the unit is the pixel. The projection is parallel: a pedestrian
fills little of a surveillance camera's field.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from veilkit.synthetic.arrays import Floats, blur, resize
from veilkit.synthetic.cameras import Light


@dataclass(frozen=True, slots=True)
class View:
    """yaw, pitch: radians (yaw 0 faces the viewer). scale: pixels per stature. x, ground: pixels of the feet."""

    yaw: float
    pitch: float
    scale: float
    x: float
    ground: float
    aspect: float = 1.0
    roll: float = 0.0

    def project(self, points: Floats) -> Floats:
        """Body points (N, 3) to picture points (N, 3): x, y down, depth towards the viewer."""
        sin, cos = math.sin(self.yaw), math.cos(self.yaw)
        px, py, pz = points[:, 0], points[:, 1], points[:, 2]
        x = px * cos + pz * sin + self.roll * py
        z = -px * sin + pz * cos
        down = -(py * math.cos(self.pitch) - z * math.sin(self.pitch))
        depth = py * math.sin(self.pitch) + z * math.cos(self.pitch)
        return np.stack(
            [self.x + self.scale * self.aspect * x, self.ground + self.scale * down, self.scale * depth], axis=1
        ).astype(np.float32)

    def axes(self, turn: float = 0.0) -> tuple[Floats, Floats]:
        """The directions (3,) in the picture of the body's right-hand and front, turned by `turn` radians more."""
        sin, cos = math.sin(self.yaw + turn), math.cos(self.yaw + turn)
        tilt, flat = math.sin(self.pitch), math.cos(self.pitch)
        right = np.array([cos, -sin * tilt, -sin * flat], np.float32)
        front = np.array([sin, cos * tilt, cos * flat], np.float32)
        return right, front


@dataclass(slots=True)
class Spots:
    """The N visible points of one surface, where a material is asked for colours.

    around: radians round the axis, 0 in front, positive to the body's right-hand side of the picture.
    along: 0 at the start of the surface to 1 at its end. side, down: distances over the surface, in statures.
    """

    around: Floats
    along: Floats
    side: Floats
    down: Floats


Material = Callable[[Spots], Floats]
"""Spots to linear colours (N, 3)."""

Keep = Callable[[Spots], NDArray[np.bool_]]
"""Which spots exist: cuts hems, hairlines and openings."""


@dataclass(frozen=True, slots=True)
class Finish:
    """What a surface is made of. folds: how far wrinkles bend the normal. gloss: strength of the highlight."""

    material: Material
    folds: float = 0.0
    gloss: float = 0.0
    grain: tuple[float, float] = (1.0, 1.0)
    offset: tuple[float, float] = (0.0, 0.0)


def _noise_slopes(size: int = 256) -> Floats:
    """Slopes (2, size, size) of a fixed, tileable, smooth random height: the wrinkles of cloth."""
    rng = np.random.Generator(np.random.PCG64(20_11))
    fy = np.fft.fftfreq(size)[:, None] * size
    fx = np.fft.fftfreq(size)[None, :] * size
    radius = np.hypot(fx, fy)
    spectrum = np.exp(-((radius / 14.0) ** 2)) * (radius > 0.5) / np.maximum(radius, 1.0) ** 0.6
    wave = spectrum * np.exp(2j * np.pi * rng.random((size, size)))
    slopes = np.stack([np.fft.ifft2(wave * fx * 1j).real, np.fft.ifft2(wave * fy * 1j).real])
    return np.asarray(slopes / slopes.std(), np.float32)


_SLOPES = _noise_slopes()
_TILES_PER_STATURE = 420.0


class Canvas:
    """The buffers of one figure in `view`: depth, linear colour, normal (x right, y down, z to the viewer), gloss."""

    def __init__(self, height: int, width: int, view: View) -> None:
        self.view = view
        self.depth: Floats = np.full((height, width), -1e6, np.float32)
        self.colour: Floats = np.zeros((height, width, 3), np.float32)
        self.normal: Floats = np.zeros((height, width, 3), np.float32)
        self.gloss: Floats = np.zeros((height, width), np.float32)

    def window(self, left: float, right: float, top: float, bottom: float) -> tuple[slice, slice] | None:
        """The rows and columns that the box covers, or None where it misses the canvas."""
        height, width = self.depth.shape
        c0, c1 = max(0, math.floor(left)), min(width, math.ceil(right) + 1)
        r0, r1 = max(0, math.floor(top)), min(height, math.ceil(bottom) + 1)
        return None if c0 >= c1 or r0 >= r1 else (slice(r0, r1), slice(c0, c1))

    def paint(
        self,
        window: tuple[slice, slice],
        pick: NDArray[np.bool_],
        depth: Floats,
        normal: tuple[Floats, Floats, Floats],
        spots: Spots,
        finish: Finish,
        keep: Keep | None,
    ) -> None:
        """Write the picked pixels of `window`; depth, normal and spots hold one value per picked pixel."""
        rows, cols = np.nonzero(pick)
        rows += window[0].start
        cols += window[1].start
        nx, ny, nz = normal
        if keep is not None:
            kept = np.flatnonzero(keep(spots))
            rows, cols, depth = rows[kept], cols[kept], depth[kept]
            nx, ny, nz = nx[kept], ny[kept], nz[kept]
            spots = Spots(spots.around[kept], spots.along[kept], spots.side[kept], spots.down[kept])
        if rows.size == 0:
            return
        if finish.folds:
            i = ((spots.down * finish.grain[1] + finish.offset[1]) * _TILES_PER_STATURE).astype(np.int32) & 255
            j = ((spots.side * finish.grain[0] + finish.offset[0]) * _TILES_PER_STATURE).astype(np.int32) & 255
            nx = nx + finish.folds * _SLOPES[0, i, j]
            ny = ny + finish.folds * _SLOPES[1, i, j]
            size = 1.0 / np.sqrt(nx * nx + ny * ny + nz * nz)
            nx, ny, nz = nx * size, ny * size, nz * size
        self.depth[rows, cols] = depth
        self.colour[rows, cols] = finish.material(spots)
        self.normal[rows, cols] = np.stack([nx, ny, nz], axis=1)
        self.gloss[rows, cols] = finish.gloss


def shade(canvas: Canvas, light: Light, supersampling: int) -> tuple[Floats, Floats]:
    """Linear colour (H, W, 3), multiplied by its coverage, and coverage (H, W) in [0, 1], at picture size."""
    height, width = canvas.depth.shape
    solid = np.nonzero(canvas.depth > -1e5)
    cover = np.zeros((height, width), np.float32)
    cover[solid] = 1.0
    normal, direction = canvas.normal[solid], light.direction()
    lit = np.clip(0.2 + 0.8 * (normal @ direction), 0, None)
    open_to_sky = 0.62 - 0.38 * normal[:, 1]
    closeness = _occlusion(canvas.depth, cover)[solid]
    rim = 0.55 + 0.45 * np.clip(normal[:, 2] * 1.6, 0, 1)
    warm = np.array([1 + light.warmth, 1.0, 1 - light.warmth], np.float32)
    cool = np.array([1 - 0.4 * light.warmth, 1.0, 1 + 0.4 * light.warmth], np.float32)
    sun = (light.sun * lit * (0.35 + 0.65 * closeness))[:, None] * warm
    sky = (light.sky * open_to_sky * closeness * rim)[:, None] * cool
    half = direction + np.array([0, 0, 1], np.float32)
    half /= np.linalg.norm(half)
    shine = 0.25 * light.sun * canvas.gloss[solid] * closeness * np.clip(normal @ half, 0, 1) ** 12
    picture = np.zeros((height, width, 3), np.float32)
    picture[solid] = canvas.colour[solid] * (sun + sky) + shine[:, None]
    size = (height // supersampling, width // supersampling)
    return resize(picture, *size), resize(cover, *size)


def _occlusion(depth: Floats, cover: Floats) -> Floats:
    """1 in the open, towards 0 where nearer surfaces surround a point: the shade between arm and trunk."""
    height, width = depth.shape
    unit = height / 512
    near = resize((depth * cover).astype(np.float32, copy=False), height // 2, width // 2)
    weight = resize(cover, height // 2, width // 2)
    result = np.ones_like(depth)
    for sigma, reach, strength in ((3.0, 14.0, 0.5), (9.0, 40.0, 0.45)):
        mean = blur(near, sigma * unit) / np.maximum(blur(weight, sigma * unit), np.float32(1e-3))
        over = np.clip((resize(mean.astype(np.float32, copy=False), height, width) - depth) / (reach * unit), 0, 1)
        result *= 1 - strength * over
    return result
