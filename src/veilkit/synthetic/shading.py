"""Lighting a drawn figure: sun or lamp, sky, shade between limbs, highlights; then its cut-out at picture size."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from veilkit.synthetic.filters import blur, resize
from veilkit.synthetic.surfaces import Canvas
from veilkit.synthetic.view import Floats


@dataclass(frozen=True, slots=True)
class Light:
    """azimuth: radians, 0 from the viewer, positive from the right. height: radians. sun, sky: strengths."""

    azimuth: float
    height: float
    sun: float
    sky: float
    warmth: float

    def direction(self) -> Floats:
        """Towards the light (3,): x right, y down, z to the viewer."""
        flat = math.cos(self.height)
        return np.array(
            [math.sin(self.azimuth) * flat, -math.sin(self.height), math.cos(self.azimuth) * flat], np.float32
        )


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
