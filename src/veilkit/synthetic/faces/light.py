"""Light on a face: a lamp with soft shadows, sky and bounce, shade in hollows, light that goes through skin."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from veilkit.synthetic.faces.lens import Lens
from veilkit.synthetic.faces.raster import Canvas, Ints, cover
from veilkit.synthetic.filters import blur, resize
from veilkit.synthetic.view import Floats

_MAP, _SPAN, _FINE = 112, 460.0, 4  # pixels and millimetres of the shadow map; how much finer it is looked up


@dataclass(frozen=True, slots=True)
class Light:
    """azimuth, height: degrees, from the right and from above. lamp, sky, rim: strengths. warmth: of the lamp."""

    azimuth: float
    height: float
    lamp: float
    sky: float
    warmth: float
    rim: float = 0.0

    def direction(self) -> Floats:
        """Towards the lamp (3,), camera frame."""
        a, h = math.radians(self.azimuth), math.radians(self.height)
        return np.array([math.sin(a) * math.cos(h), math.sin(h), math.cos(a) * math.cos(h)], np.float32)


def draw_light(rng: np.random.Generator) -> Light:
    """A window, a lamp or an overcast sky, somewhere in front."""
    lamp = float(rng.uniform(0.35, 1.0))
    return Light(
        azimuth=float(np.clip(rng.normal(0, 38), -80, 80)),
        height=float(rng.uniform(8, 55)),
        lamp=lamp,
        sky=float(rng.uniform(0.9, 1.15)) - 0.55 * lamp,
        warmth=float(rng.uniform(-0.06, 0.16)),
        rim=float(rng.uniform(0.2, 0.8)) if rng.random() < 0.3 else 0.0,
    )


class Shadow:
    """A depth map from the lamp's side."""

    def __init__(self, light: Light, centre: Floats, meshes: list[tuple[Floats, Ints]]) -> None:
        toward = light.direction()
        right = np.cross(np.array([0, 1, 0], np.float32), toward)
        right /= np.linalg.norm(right)
        self.axes = np.stack([right, -np.cross(toward, right), toward]).astype(np.float32)
        self.centre = centre
        depth = np.full(_MAP * _MAP, -1e3, np.float32)
        for points, triangles in meshes:
            found = cover(self._place(points), triangles, _MAP, _MAP, both_sides=True)
            np.maximum.at(depth, found.pixel, found.near)
        self.depth = resize(depth.reshape(_MAP, _MAP), _MAP * _FINE, _MAP * _FINE)

    def _place(self, points: Floats) -> Floats:
        placed = (points - self.centre) @ self.axes.T
        placed[:, :2] = placed[:, :2] * np.float32(_MAP / _SPAN) + np.float32(_MAP / 2)
        return np.asarray(placed, np.float32)

    def lit(self, points: Floats) -> Floats:
        """1 in the light, 0 in the shadow, for camera points (N, 3)."""
        placed = self._place(points)
        total = np.zeros(len(points), np.float32)
        for dx, dy in ((-0.9, -0.4), (0.9, 0.4), (-0.4, 0.9), (0.4, -0.9)):
            x = np.clip((placed[:, 0] + dx) * _FINE, 0, _MAP * _FINE - 1).astype(np.int32)
            y = np.clip((placed[:, 1] + dy) * _FINE, 0, _MAP * _FINE - 1).astype(np.int32)
            total += np.clip(1 - (self.depth[y, x] - placed[:, 2] - 6.0) / 9.0, 0, 1)
        return np.asarray(total / 4, np.float32)


def shade(canvas: Canvas, lens: Lens, light: Light, shadow: Shadow) -> tuple[Floats, Floats]:
    """Linear colour (H, W, 3) and coverage (H, W) of what was drawn."""
    solid = np.flatnonzero(canvas.near > 0)
    x = (solid % canvas.width + 0.5).astype(np.float32)
    y = (solid // canvas.width + 0.5).astype(np.float32)
    near = canvas.near[solid]
    points = lens.points(x, y, near)
    normal, deep = canvas.normal[solid], canvas.depth[solid][:, None]
    toward = light.direction()
    facing = (normal @ toward)[:, None]
    wrap = deep * np.array([0.30, 0.16, 0.11], np.float32) + 0.04
    direct = np.clip((facing + wrap) / (1 + wrap), 0, None)
    open_ = shadow.lit(points)[:, None]
    through = deep * np.array([0.16, 0.04, 0.02], np.float32)
    open_ = open_ + (1 - open_) * through
    closeness = _hollows(canvas, lens, solid, near)[:, None]
    warm = np.array([1 + light.warmth, 1.0, 1 - light.warmth], np.float32)
    cool = np.array([1 - 0.4 * light.warmth, 1.0, 1 + 0.4 * light.warmth], np.float32)
    sky = (0.72 + 0.28 * normal[:, 1:2]) * closeness * (0.72 + 0.28 * np.clip(normal[:, 2:] * 1.5, 0, 1))
    sky = sky * light.sky * cool * (1 + deep * (1 - closeness) * np.array([0.25, 0.0, -0.05], np.float32))
    view = np.array([0, 0, 1], np.float32)
    half = toward + view
    half /= np.linalg.norm(half)
    gloss = canvas.gloss[solid][:, None]
    shine = gloss * light.lamp * open_ * np.clip(normal @ half, 0, 1)[:, None] ** 22 * 0.13
    sheen = gloss * light.sky * np.clip(1 - normal[:, 2:], 0, 1) ** 3 * 0.06 * closeness
    back = np.clip(-0.75 * normal[:, 2:] + 0.66 * np.sign(-light.azimuth) * normal[:, :1] - 0.1, 0, 1)
    lit = canvas.colour[solid] * (light.lamp * direct * open_ * warm + sky + 1.5 * light.rim * back)
    picture = np.zeros((canvas.height * canvas.width, 3), np.float32)
    picture[solid] = lit + shine * warm + sheen
    mask = np.zeros(canvas.height * canvas.width, np.float32)
    mask[solid] = 1
    return picture.reshape(canvas.height, canvas.width, 3), mask.reshape(canvas.height, canvas.width)


def _hollows(canvas: Canvas, lens: Lens, solid: NDArray[np.int64], near: Floats) -> Floats:
    """1 in the open, towards 0 where nearer surfaces surround a place."""
    away = lens.distance - 1000 / near
    table = np.zeros(canvas.height * canvas.width, np.float32)
    table[solid] = away + 1000
    mask = (table > 0).astype(np.float32)
    shape = canvas.height, canvas.width
    small = max(1, canvas.height // 2), max(1, canvas.width // 2)
    table_, mask_ = resize(table.reshape(shape), *small), resize(mask.reshape(shape), *small)
    result = np.ones(len(solid), np.float32)
    # Two reaches: folds of skin, and the shade of nose, brow and hair.
    for size, reach, strength in ((3.5, 7.0, 0.5), (11.0, 22.0, 0.45)):
        sigma = max(0.6, size * lens.scale / 2)
        mean = blur(table_, sigma) / np.maximum(blur(mask_, sigma), 1e-3)
        over = resize(mean.astype(np.float32), *shape).ravel()[solid] - 1000 - away
        result *= 1 - strength * np.clip(over / reach, 0, 1)
    return result
