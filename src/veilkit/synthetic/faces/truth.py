"""What is known of a drawn face, and its form in a file."""

from __future__ import annotations

from dataclasses import astuple, dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from veilkit.synthetic.faces.capture import Capture
from veilkit.synthetic.faces.expression import ACTIONS
from veilkit.synthetic.faces.identity import Face
from veilkit.synthetic.faces.landmarks import five_points, landmark_points
from veilkit.synthetic.faces.lens import Lens, angles_of
from veilkit.synthetic.faces.moves import eye_opening
from veilkit.synthetic.faces.render import Drawn
from veilkit.synthetic.faces.sculpt import BALL
from veilkit.synthetic.faces.template import template
from veilkit.synthetic.view import Floats

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
