"""The 68 points of the iBUG scheme, as places on the template that move with the face."""

from __future__ import annotations

import math

import numpy as np

from veilkit.synthetic.faces.identity import Shape
from veilkit.synthetic.faces.moves import Opening
from veilkit.synthetic.faces.sculpt import lip_edges
from veilkit.synthetic.faces.skin import brow_line
from veilkit.synthetic.faces.template import EYE, MOUTH, sample, template
from veilkit.synthetic.view import Floats

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
