"""Lighting a drawn figure: sun or lamp, sky, shade between limbs, highlights; then its cut-out at picture size."""

from __future__ import annotations

import math
from dataclasses import dataclass

import cv2
import numpy as np

from veilkit.datasets.generated.surfaces import Canvas
from veilkit.datasets.generated.view import Floats


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
    size = (width // supersampling, height // supersampling)
    return cv2.resize(picture, size, interpolation=cv2.INTER_AREA), cv2.resize(cover, size, interpolation=cv2.INTER_AREA)


def _occlusion(depth: Floats, cover: Floats) -> Floats:
    """1 in the open, towards 0 where nearer surfaces surround a point: the shade between arm and trunk."""
    unit = depth.shape[0] / 512
    small = (depth.shape[1] // 2, depth.shape[0] // 2)
    near = cv2.resize(np.where(cover > 0, depth, 0).astype(np.float32), small, interpolation=cv2.INTER_AREA)
    weight = cv2.resize(cover, small, interpolation=cv2.INTER_AREA)
    result = np.ones_like(depth)
    for sigma, reach, strength in ((3.0, 14.0, 0.5), (9.0, 40.0, 0.45)):
        blurred = cv2.GaussianBlur(near, (0, 0), sigma * unit)
        share = cv2.GaussianBlur(weight, (0, 0), sigma * unit)
        around = cv2.resize(
            blurred / np.maximum(share, 1e-3), (depth.shape[1], depth.shape[0]), interpolation=cv2.INTER_LINEAR
        )
        over = np.clip((around - depth) / (reach * unit), 0, 1)
        result = result * (1 - strength * over)
    return result.astype(np.float32)
