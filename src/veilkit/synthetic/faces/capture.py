"""One moment before one camera: everything about a picture that is not who is in it."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from veilkit.errors import ConfigError
from veilkit.synthetic.arrays import Floats
from veilkit.synthetic.cameras import Camera
from veilkit.synthetic.cameras import Light as Daylight
from veilkit.synthetic.faces.expression import Expression, draw_expression
from veilkit.synthetic.faces.lens import Angles


@dataclass(frozen=True, slots=True)
class Ranges:
    """Most degrees to either side of head pose (yaw, pitch, roll) and of gaze in the head (yaw, pitch)."""

    yaw: float = 40.0
    pitch: float = 20.0
    roll: float = 15.0
    gaze_yaw: float = 25.0
    gaze_pitch: float = 15.0

    def __post_init__(self) -> None:
        for name, most in (("yaw", 75), ("pitch", 45), ("roll", 90), ("gaze_yaw", 35), ("gaze_pitch", 25)):
            value = getattr(self, name)
            if not 0 <= value <= most:
                raise ConfigError(f"{name} must be between 0 and {most} degrees, but got {value}")


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


@dataclass(frozen=True, slots=True)
class Capture:
    """pose: of the head. gaze: of the eyes in the head. zoom: share of the picture's height that a face of average
    size takes.

    shift: of the face from the middle, as shares of the picture's sides. distance: millimetres from camera to eyes.
    """

    expression: Expression
    gaze: Angles
    pose: Angles
    light: Light
    camera: Camera
    zoom: float
    shift: tuple[float, float]
    distance: float


def draw_capture(rng: np.random.Generator, ranges: Ranges) -> Capture:
    """Expression, gaze, pose, light and framing, each drawn without regard to the others."""
    return Capture(
        expression=draw_expression(rng),
        gaze=Angles(_within(rng, ranges.gaze_yaw), _within(rng, ranges.gaze_pitch)),
        pose=Angles(_within(rng, ranges.yaw), _within(rng, ranges.pitch), _within(rng, ranges.roll)),
        light=draw_light(rng),
        camera=draw_camera(rng),
        zoom=float(rng.uniform(0.64, 0.76)),
        shift=(float(rng.normal(0, 0.02)), float(rng.normal(0, 0.015))),
        distance=float(rng.uniform(550, 1500)),
    )


def _within(rng: np.random.Generator, most: float) -> float:
    """Degrees up to `most` to either side, more often few than many."""
    return float(np.clip(rng.normal(0, 0.5 * most), -most, most)) if most else 0.0


def draw_camera(rng: np.random.Generator) -> Camera:
    """Colour cast, exposure, sharpness and noise of one picture."""
    gains = np.exp(rng.normal(0, 0.025, 3))
    return Camera(
        place="",
        gains=(float(gains[0]), float(gains[1]), float(gains[2])),
        exposure=float(np.exp(rng.normal(0.05, 0.13))),
        gamma=float(np.exp(rng.uniform(-0.1, 0.1))),
        contrast=float(rng.uniform(0.92, 1.12)),
        saturation=float(rng.uniform(0.88, 1.12)),
        haze=float(rng.uniform(0.0, 0.03)),
        resolution=float(rng.uniform(0.75, 1.0)),
        blur=float(rng.uniform(0.2, 0.9)),
        noise=float(rng.uniform(0.002, 0.012)),
        pitch=0.0,
        light=Daylight(0.0, 0.0, 0.0, 0.0, 0.0),
        quality=95,
    )
