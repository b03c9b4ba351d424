"""What is known of a drawn face: its 68 points in the iBUG scheme, gaze, pose and expression; its form in a file."""

from __future__ import annotations

import math
from dataclasses import astuple, dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from veilkit.synthetic.arrays import Floats
from veilkit.synthetic.faces.capture import Capture
from veilkit.synthetic.faces.expression import ACTIONS, Opening, eye_opening
from veilkit.synthetic.faces.identity import Face, Shape
from veilkit.synthetic.faces.lens import Lens, angles_of
from veilkit.synthetic.faces.render import Drawn
from veilkit.synthetic.faces.sculpt import BALL, lip_edges
from veilkit.synthetic.faces.skin import brow_line
from veilkit.synthetic.faces.template import EYE, MOUTH, sample, template

FIVE = ((36, 37, 38, 39, 40, 41), (42, 43, 44, 45, 46, 47), (30,), (48,), (54,))
"""Which of the 68 points each of the five (eye, eye, tip of the nose, corner, corner of the mouth) is the mean of."""

# Angle (degrees) and v of the outline from beside the eye down to the chin.
_JAW = ((80, -4), (80, -22), (79, -40), (77, -57), (72, -74), (60, -90), (42, -102), (21, -109.5), (0, -111.5))
_BROW = (51.0, 44.0, 35.5, 26.0, 14.5)
_LIP = (14.5, 5.2)


def landmark_points(points: Floats, shape: Shape, opening: Opening) -> Floats:
    """The 68 points (68, 3), in the frame of `points` (rows, columns, 3).

    17 of the outline, 5 and 5 of the brows, 9 of the nose, 6 and 6 of the eyes, 12 of the outer and 8 of the inner
    edge of the lips; each from the left of the picture to the right.
    """
    mould = template()
    jaw = np.array(_JAW + tuple((-angle, v) for angle, v in _JAW[-2::-1]), np.float32)
    rows, columns = mould.turned(-jaw[:, 0] * np.float32(math.pi / 180), jaw[:, 1])
    places = np.concatenate([_brows(), _nose(shape), _eyes(opening), _mouth(shape)])
    more_rows, more_columns = mould.at(places[:, 0], places[:, 1])
    return sample(points, np.concatenate([rows, more_rows]), np.concatenate([columns, more_columns]))


def _brows() -> Floats:
    a = np.array(_BROW, np.float32)
    v = brow_line(a)
    return np.stack([np.concatenate([-a, a[::-1]]), np.concatenate([v, v[::-1]])], axis=1)


def _nose(shape: Shape) -> Floats:
    wing = 11.5 * (1 + 0.1 * shape.nose_width)
    ridge = [(0, 3), (0, -11), (0, -25), (0, -38.5)]
    base = [(-wing, -46.0), (-0.5 * wing, -48.6), (0, -50), (0.5 * wing, -48.6), (wing, -46.0)]
    return np.array(ridge + base, np.float32)


def _eyes(opening: Opening) -> Floats:
    half, third = opening.half, 0.36 * opening.half
    outer_to_inner = np.array([EYE[0] + third, EYE[0] - third], np.float32)
    ends = np.array([EYE[0] + half, EYE[0] - half], np.float32)
    top, bottom = opening.edges(outer_to_inner)
    tips = opening.edges(ends)[1]
    left = [(-ends[0], tips[0]), (-outer_to_inner[0], top[0]), (-outer_to_inner[1], top[1]), (-ends[1], tips[1]),
            (-outer_to_inner[1], bottom[1]), (-outer_to_inner[0], bottom[0])]  # fmt: skip
    right = [(-left[i][0], left[i][1]) for i in (3, 2, 1, 0, 5, 4)]
    return np.array(left + right, np.float32)


def _mouth(shape: Shape) -> Floats:
    far, near = _LIP
    u = np.array([-far, -near, 0, near, far], np.float32)
    top, bottom = lip_edges(shape, u)
    outer = [(-24.0, MOUTH), *zip(u, top, strict=True), (24.0, MOUTH), *zip(u[::-1], bottom[::-1], strict=True)]
    inner_u = np.array([-9, 0, 9], np.float32)
    inner = [(-22.8, MOUTH), *((each, MOUTH + 0.5) for each in inner_u), (22.8, MOUTH)]
    inner += [(each, MOUTH - 0.5) for each in inner_u[::-1]]
    return np.array(outer + inner, np.float32)


def five_points(landmarks: Floats) -> Floats:
    """Eyes, tip of the nose and corners of the mouth (..., 5, 2) from 68 points (..., 68, 2)."""
    return np.stack([landmarks[..., list(part), :].mean(axis=-2) for part in FIVE], axis=-2)


_THICKNESS = 7.0  # millimetres


@dataclass(frozen=True, slots=True)
class FaceTruth:
    """Pixels are x, y with (0, 0) at the left top corner of the picture; angles are degrees.

    landmarks: (68, 2). visible: (68,), whether nothing is in front of the point. irises: (2, 2) their middles.
    box: left, top, right, bottom from hairline to chin, ear to ear. gaze: yaw, pitch of the eyes in the head.
    camera_gaze: in the camera's frame. pose: yaw, pitch, roll of the head. actions: strengths of the action units, in
    their order.
    """

    landmarks: Floats
    visible: NDArray[np.bool_]
    irises: Floats
    box: tuple[float, float, float, float]
    gaze: tuple[float, float]
    camera_gaze: tuple[float, float]
    pose: tuple[float, float, float]
    expression: str
    intensity: float
    actions: tuple[float, ...]

    @property
    def five(self) -> Floats:
        """Eyes, tip of the nose, corners of the mouth: (5, 2)."""
        return five_points(self.landmarks)

    def moved(self, x: float, y: float) -> FaceTruth:
        """The same face in a picture of which this one is the part from (x, y)."""
        by = np.array([x, y], np.float32)
        left, top, right, bottom = self.box
        box = left + x, top + y, right + x, bottom + y
        return replace(self, landmarks=self.landmarks + by, irises=self.irises + by, box=box)

    def as_json(self, person: str) -> dict[str, Any]:
        """Plain values, with pixels to a hundredth and angles to a thousandth."""
        return {
            "person": person,
            "box": [round(each, 2) for each in self.box],
            "landmarks": np.round(self.landmarks.astype(float), 2).tolist(),
            "visible": self.visible.astype(int).tolist(),
            "five": np.round(self.five.astype(float), 2).tolist(),
            "irises": np.round(self.irises.astype(float), 2).tolist(),
            "gaze": [round(each, 3) for each in self.gaze],
            "camera_gaze": [round(each, 3) for each in self.camera_gaze],
            "pose": [round(each, 3) for each in self.pose],
            "expression": self.expression,
            "intensity": round(self.intensity, 4),
            "actions": {name: round(value, 4) for name, value in zip(ACTIONS, self.actions, strict=True)},
        }

    @classmethod
    def from_json(cls, values: dict[str, Any]) -> FaceTruth:
        """The inverse of `as_json`, but for the person and what follows from the landmarks."""
        return cls(
            landmarks=np.array(values["landmarks"], np.float32),
            visible=np.array(values["visible"], bool),
            irises=np.array(values["irises"], np.float32),
            box=tuple(values["box"]),
            gaze=tuple(values["gaze"]),
            camera_gaze=tuple(values["camera_gaze"]),
            pose=tuple(values["pose"]),
            expression=values["expression"],
            intensity=values["intensity"],
            actions=tuple(values["actions"][name] for name in ACTIONS),
        )


def face_truth(who: Face, moment: Capture, lens: Lens, drawn: Drawn, supersampling: int) -> FaceTruth:
    """The truth of what was `drawn` through `lens` on a canvas `supersampling` times as fine as the picture."""
    opening = eye_opening(who.shape, moment.expression.actions, moment.gaze.pitch)
    marks = lens.screen(landmark_points(drawn.points, who.shape, opening))
    direction = lens.pose.matrix() @ moment.gaze.direction()
    ahead = drawn.eyes + np.float32(BALL) * moment.gaze.direction()
    face = lens.screen(drawn.points[face_part()])
    left, top = (float(each) / supersampling for each in face[:, :2].min(axis=0))
    right, bottom = (float(each) / supersampling for each in face[:, :2].max(axis=0))
    return FaceTruth(
        landmarks=marks[:, :2] / np.float32(supersampling),
        visible=_visible(marks, lens, drawn),
        irises=lens.screen(lens.turn(ahead))[:, :2] / np.float32(supersampling),
        box=(left, top, right, bottom),
        gaze=(moment.gaze.yaw, moment.gaze.pitch),
        camera_gaze=angles_of(direction),
        pose=(moment.pose.yaw, moment.pose.pitch, moment.pose.roll),
        expression=moment.expression.label,
        intensity=moment.expression.intensity,
        actions=astuple(moment.expression.actions),
    )


def face_part() -> NDArray[np.bool_]:
    """Which points of the template are the face, from hairline to chin and from ear to ear."""
    mould = template()
    return (np.abs(mould.angle) < 1.4) & (mould.v < 63) & (mould.v > -113)


def _visible(marks: Floats, lens: Lens, drawn: Drawn) -> NDArray[np.bool_]:
    """Whether each point is in the picture and nothing on the canvas is more than a lip's thickness nearer."""
    canvas = drawn.canvas
    x, y = np.floor(marks[:, 0]).astype(int), np.floor(marks[:, 1]).astype(int)
    inside = (x >= 0) & (y >= 0) & (x < canvas.width) & (y < canvas.height)
    pixel = np.clip(y, 0, canvas.height - 1) * canvas.width + np.clip(x, 0, canvas.width - 1)
    there = canvas.near[pixel]
    seen = np.where(there > 0, lens.distance - 1000 / np.maximum(there, 1e-6), -1e6)
    return np.asarray(inside & (seen - (lens.distance - 1000 / marks[:, 2]) < _THICKNESS))
