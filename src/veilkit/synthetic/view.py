"""How a body in its own frame reaches the picture: turn (yaw), look down (pitch), scale, place.

Body frame: x to the right of somebody facing the viewer, y up, z out of the chest; the unit is the body's stature.
Picture frame: x right, y down, z towards the viewer; the unit is the pixel. The projection is parallel: a pedestrian
fills little of a surveillance camera's field.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float32]


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
