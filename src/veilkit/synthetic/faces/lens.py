"""Where a head is and how a camera sees it: rotations, perspective, angles.

Camera frame: x right, y up, z towards the viewer; millimetres, with the camera at (0, 0, distance), looking along -z.
Yaw turns towards the right of the picture, pitch up, roll clockwise; degrees.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from veilkit.synthetic.arrays import Floats

_NECK = np.array([0.0, -95.0, -90.0], np.float32)  # the head turns about this point


@dataclass(frozen=True, slots=True)
class Angles:
    """Yaw, pitch and roll in degrees."""

    yaw: float
    pitch: float
    roll: float = 0.0

    def matrix(self) -> Floats:
        """The rotation (3, 3) that pitches first, then yaws, then rolls."""
        y, p, r = (math.radians(each) for each in (self.yaw, self.pitch, -self.roll))
        pitch = np.array([[1, 0, 0], [0, math.cos(p), math.sin(p)], [0, -math.sin(p), math.cos(p)]])
        yaw = np.array([[math.cos(y), 0, math.sin(y)], [0, 1, 0], [-math.sin(y), 0, math.cos(y)]])
        roll = np.array([[math.cos(r), -math.sin(r), 0], [math.sin(r), math.cos(r), 0], [0, 0, 1]])
        return np.asarray(roll @ yaw @ pitch, np.float32)

    def direction(self) -> Floats:
        """Where somebody looks who was turned so from looking at the viewer: (3,)."""
        return self.matrix()[:, 2]


def angles_of(direction: Floats) -> tuple[float, float]:
    """Yaw and pitch in degrees of a direction (3,)."""
    x, y, z = (float(each) for each in direction / np.linalg.norm(direction))
    return math.degrees(math.atan2(x, z)), math.degrees(math.asin(max(-1.0, min(1.0, y))))


@dataclass(frozen=True, slots=True)
class Lens:
    """A perspective camera and the place of one head before it.

    scale: pixels per millimetre at z = 0. middle: the pixel on the optical axis. offset: of the head, in millimetres.
    """

    pose: Angles
    scale: float
    distance: float
    middle: tuple[float, float]
    offset: tuple[float, float, float] = (0.0, 0.0, 0.0)

    def turn(self, points: Floats) -> Floats:
        """Head points (..., 3) to the camera frame."""
        placed = (points - _NECK) @ self.pose.matrix().T + _NECK
        return np.asarray(placed + np.array(self.offset, np.float32), np.float32)

    def turn_body(self, points: Floats) -> Floats:
        """Points of the trunk to the camera frame: it follows the head's turn a little."""
        body = Angles(0.35 * self.pose.yaw, 0.0, 0.15 * self.pose.roll).matrix()
        placed = (points - _NECK) @ body.T + _NECK
        return np.asarray(placed + np.array(self.offset, np.float32), np.float32)

    def screen(self, points: Floats) -> Floats:
        """Camera points (..., 3) to pixels x, y (down) and nearness."""
        away = self.distance - points[..., 2]
        factor = self.scale * self.distance / away
        return np.stack(
            [self.middle[0] + factor * points[..., 0], self.middle[1] - factor * points[..., 1], 1000.0 / away],
            axis=-1,
        ).astype(np.float32)

    def points(self, x: Floats, y: Floats, near: Floats) -> Floats:
        """Pixels and nearness (N,) back to camera points (N, 3)."""
        away = 1000.0 / near
        factor = away / (self.scale * self.distance)
        return np.stack(
            [(x - self.middle[0]) * factor, (self.middle[1] - y) * factor, self.distance - away], axis=-1
        ).astype(np.float32)

    def to_head(self, points: Floats) -> Floats:
        """Camera points (N, 3) to the head frame."""
        return np.asarray(
            (points - np.array(self.offset, np.float32) - _NECK) @ self.pose.matrix() + _NECK, np.float32
        )
