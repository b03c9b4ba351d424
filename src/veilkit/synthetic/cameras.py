"""Cameras: each has its own colour cast, light, sharpness, noise, place and compression, and keeps them."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache

import cv2
import numpy as np
from numpy.typing import NDArray

from veilkit.rng import Randomness
from veilkit.synthetic.arrays import Floats, warp

PLACES = ("street", "corridor", "park", "plaza", "station", "campus")
_GOLDEN = math.pi * (3 - math.sqrt(5))


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


@dataclass(frozen=True, slots=True)
class Camera:
    """gains: red, green, blue. resolution: the share of the picture's pixels that the sensor saw along each side.

    blur: standard deviation in pixels of a picture 256 high. noise: standard deviation of display values in [0, 1].
    pitch: radians that the camera looks down. quality: of the JPEG files it writes.
    """

    place: str
    gains: tuple[float, float, float]
    exposure: float
    gamma: float
    contrast: float
    saturation: float
    haze: float
    resolution: float
    blur: float
    noise: float
    pitch: float
    light: Light
    quality: int


@lru_cache(maxsize=256)
def draw_camera(seed: int, camera: int) -> Camera:
    """Camera number `camera` of the world `seed`.

    Hues of the casts and places follow each other in even steps, so that neighbouring cameras always differ.
    """
    root = Randomness.from_seed(seed).child("people")
    shared = root.child("cameras").numpy()
    hue = float(shared.uniform(0, 2 * math.pi)) + camera * _GOLDEN
    places = shared.permutation(len(PLACES))
    rng = root.child("camera", camera).numpy()
    strength = float(rng.uniform(0.07, 0.15))
    gains = np.exp([strength * math.cos(hue - turn) for turn in (0.0, 2 * math.pi / 3, 4 * math.pi / 3)])
    place = PLACES[int(places[camera % len(PLACES)])]
    indoors = place in ("corridor", "station")
    bright = 1 if camera % 2 else -1
    return Camera(
        place=place,
        gains=(float(gains[0]), float(gains[1]), float(gains[2])),
        exposure=float(np.exp(bright * rng.uniform(0.02, 0.16))),
        gamma=float(np.exp(rng.uniform(-0.12, 0.12))),
        contrast=float(rng.uniform(0.88, 1.14)),
        saturation=float(rng.uniform(0.75, 1.15)),
        haze=float(rng.uniform(0.0, 0.04)),
        resolution=float(rng.uniform(0.6, 1.0)),
        blur=float(rng.uniform(0.3, 0.8)),
        noise=float(rng.uniform(0.006, 0.018)),
        pitch=float(rng.uniform(0.06, 0.3)),
        light=Light(
            azimuth=float(rng.uniform(-2.2, 2.2)),
            height=float(rng.uniform(1.0, 1.35) if indoors else rng.uniform(0.5, 1.1)),
            sun=float(rng.uniform(0.35, 0.6) if indoors else rng.uniform(0.45, 1.15)),
            sky=float(rng.uniform(0.55, 0.8)),
            warmth=float(rng.uniform(-0.03, 0.12)),
        ),
        quality=int(rng.integers(62, 93)),
    )


def camera_jpeg_quality(seed: int, camera: int) -> int:
    """The JPEG quality (1 to 100) with which camera number `camera` of the world `seed` writes its pictures."""
    return draw_camera(seed, camera).quality


def develop(camera: Camera, scene: Floats, rng: np.random.Generator) -> NDArray[np.uint8]:
    """What `camera` makes of linear light (H, W, 3): 8-bit RGB, with the noise and the shake of `rng`'s moment."""
    height, width = scene.shape[:2]
    exposure = camera.exposure * float(np.exp(rng.normal(0, 0.04)))
    gains = np.array(camera.gains, np.float32) * np.exp(rng.normal(0, 0.02, 3)).astype(np.float32)
    picture = np.sqrt(np.maximum(scene * (gains * np.float32(exposure)), 0))
    small = max(8, round(width * camera.resolution)), max(8, round(height * camera.resolution))
    picture = cv2.resize(picture, small, interpolation=cv2.INTER_AREA)
    picture = cv2.GaussianBlur(picture, (0, 0), max(0.25, camera.blur * camera.resolution * height / 256))
    if rng.random() < 0.2:
        picture = cv2.filter2D(picture, -1, _shake(rng, height))
    grain = rng.standard_normal(picture.shape, dtype=np.float32)
    picture += camera.noise * (0.6 * grain + 0.6 * grain.mean(axis=2, keepdims=True) * 1.7)
    picture = cv2.resize(picture, (width, height), interpolation=cv2.INTER_CUBIC)
    grey = picture @ np.array([0.30, 0.59, 0.11], np.float32)
    picture = grey[..., None] + camera.saturation * (picture - grey[..., None])
    picture = np.clip(0.45 + camera.contrast * (picture - 0.45), 0, 1)
    # A shoulder keeps the brightest tones from clipping flat.
    picture = np.where(picture > 0.8, 0.8 + 0.2 * np.tanh((picture - 0.8) / 0.2), picture) ** np.float32(camera.gamma)
    picture = camera.haze + (1 - camera.haze) * picture
    return np.rint(np.clip(picture, 0, 1) * 255).astype(np.uint8)


def _shake(rng: np.random.Generator, height: int) -> Floats:
    """A short straight motion blur, mostly sideways as walkers move."""
    length = max(3, round(rng.uniform(3, 6) * height / 256)) | 1
    kernel = np.zeros((length, length), np.float32)
    kernel[length // 2, :] = 1.0 / length
    turn = cv2.getRotationMatrix2D((length / 2 - 0.5, length / 2 - 0.5), float(rng.normal(0, 20)), 1.0)
    kernel = warp(kernel, turn.astype(np.float32))
    return np.asarray(kernel / kernel.sum(), np.float32)
