"""Ears, trunk and glasses."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from veilkit.synthetic.arrays import Floats, bell, step
from veilkit.synthetic.colours import linear
from veilkit.synthetic.faces.identity import Face
from veilkit.synthetic.faces.raster import Fragments, Ints, Paint, look_up
from veilkit.synthetic.faces.sculpt import Head
from veilkit.synthetic.faces.template import grid_triangles


@dataclass(frozen=True, slots=True)
class Part:
    """A mesh with colours: points and normals-to-be on a grid, linear colour (V, 3) at its vertices."""

    points: Floats
    triangles: Ints
    colour: Floats
    gloss: float
    depth: float
    closed: bool = False


def ear(face: Face, head: Head, sign: int) -> Part:
    """One ear, on the side `sign` of the picture: a shell with a rim, hollow in its middle."""
    s = face.shape
    turn = np.linspace(0, 2 * math.pi, 25)
    radius = np.linspace(0.0, 1.0, 10)[:, None]
    size = 1 + 0.06 * s.ear_size
    up = np.sin(turn)
    high = 31 * size * radius * up
    wide = (16.0 + 2.5 * up) * size * radius * np.cos(turn) * np.where(np.cos(turn) < 0, 0.75, 1.0)
    rim = bell((radius - 0.86).astype(np.float32), 0.09) * step(
        (np.cos(turn) * 0.6 + up).astype(np.float32), -0.9, 0.1
    )
    hollow = np.exp(-np.square((wide - 1.0) / 6.5) - np.square((high + 5) / 8.5))
    out = (
        3.2 * rim
        - 6.5 * hollow
        + 2.0 * bell((radius - 0.55).astype(np.float32), 0.15) * step(up.astype(np.float32), -0.2, 0.5)
    )
    out = out - 5 * radius**6 * (np.cos(turn) < 0) * np.abs(np.cos(turn))
    lean = math.radians(24 + 6 * s.ear_out)
    side = float(np.abs(head.points[..., 0]).max())
    x = sign * (side - 6.5 + wide * math.sin(lean) + out * math.cos(lean))
    z = -86 - wide * math.cos(lean) + out * math.sin(lean)
    y = -12 + high + 0.12 * wide + 0 * radius
    points = np.stack([x, y, z], axis=2).astype(np.float32)
    red = np.array([1.06, 0.86, 0.84], np.float32)
    shade = (
        1
        - 0.5 * hollow
        - 0.25 * bell((radius - 0.7).astype(np.float32), 0.08) * step(up.astype(np.float32), -0.5, 0.3)
    )
    colour = (linear(face.complexion.skin) * red)[None, None] * shade[..., None]
    return Part(points, grid_triangles(*points.shape[:2]), colour.reshape(-1, 3).astype(np.float32), 0.3, 1.0)


_TRUNK = np.array(
    [
        # height, half width, z of the widest place, in front, behind
        (-118, 46, -99, -56, -146),
        (-138, 54, -100, -52, -150),
        (-150, 66, -102, -49, -155),
        (-161, 92, -103, -44, -160),
        (-171, 126, -104, -38, -165),
        (-183, 158, -105, -30, -170),
        (-202, 186, -105, -20, -176),
        (-235, 204, -105, -8, -182),
        (-290, 212, -105, 4, -186),
        (-420, 205, -105, 10, -186),
        (-1000, 190, -105, 0, -180),
    ]
)


class Trunk:
    """Shoulders, in cloth below the neckline."""

    def __init__(self, face: Face) -> None:
        s, self.face = face.shape, face
        rows = np.linspace(0, len(_TRUNK) - 1, 28)
        line = np.stack([np.interp(rows, np.arange(len(_TRUNK)), _TRUNK[:, i]) for i in range(5)], axis=1)
        grow = np.interp(rows, [0, 2, 6, 10], [0, 0.3, 1, 1])
        line[:, 1] += (9 * s.masculine + 6 * s.weight) * grow + (3 * s.masculine + 1.8 * s.weight) * (1 - grow)
        turn = np.linspace(-math.pi, math.pi, 49)
        sin, cos = np.sin(turn), np.cos(turn)
        reach = np.where(cos > 0, line[:, 3:4] - line[:, 2:3], line[:, 2:3] - line[:, 4:5])
        height = line[:, :1] + 0 * turn
        points = [line[:, 1:2] * sin, height - 2.0 * s.length, line[:, 2:3] + reach * cos]
        self.points = np.stack(points, axis=2).astype(np.float32)
        self.triangles = grid_triangles(*self.points.shape[:2])
        self.table = np.stack([(turn + 0 * height).ravel(), height.ravel()], axis=1).astype(np.float32)

    def paint(self, found: Fragments) -> Paint:
        """Skin above the neckline, cloth with a seam below it."""
        place = found.values(self.table)
        turn, height, open_ = place[:, 0], place[:, 1], self.face.attributes.neckline
        below = -145 - 42 * open_ * bell(turn, 0.32 + 0.3 * open_) - height
        fold = look_up("soft", 0.8 * height, 60 * turn, self.face.texture)
        seam = 1 - 0.3 * bell(below - 7, 0.9) - 0.35 * bell(below, 1.6)
        cloth = linear(self.face.attributes.cloth) * ((1 + 0.12 * fold) * seam)[:, None]
        worn = step(below, -0.6, 0.6)
        skin = linear(self.face.complexion.skin) * (1 - 0.25 * bell(below, 4.0))[:, None]
        colour = skin + worn[:, None] * (cloth - skin)
        bend = np.stack([0.10 * fold, 0.06 * fold, 0 * fold], axis=1) * worn[:, None]
        return Paint(colour.astype(np.float32), 0.25 * (1 - worn), 1 - 0.8 * worn, bend.astype(np.float32))


def glasses(face: Face, head: Head) -> list[Part]:
    """Rims, bridge and temples as thin tubes."""
    kind = face.attributes.frame
    if kind == "none":
        return []
    thick = {"round": 1.5, "square": 1.9, "thin": 0.8}[kind]
    half, high, power = {"round": (23, 21, 2.0), "square": (26, 18, 4.0), "thin": (25, 17, 2.8)}[kind]
    colour = linear(face.attributes.frame_colour)
    front = float(head.eyes[:, 2].max()) + 24
    turn = np.linspace(0, 2 * math.pi, 41)
    parts = []
    for centre in head.eyes:
        cos, sin = np.cos(turn), np.sin(turn)
        x = centre[0] * 1.06 + half * np.sign(cos) * np.abs(cos) ** (2 / power)
        y = centre[1] - 3 + high * np.sign(sin) * np.abs(sin) ** (2 / power)
        z = front - 0.0035 * np.square(x)
        parts.append(_tube(np.stack([x, y, z], axis=1), thick, colour))
        sign = float(np.sign(centre[0]))
        end = centre[0] * 1.06 + sign * half
        side = float(np.abs(head.points[..., 0]).max()) + 1
        t = np.linspace(0, 1, 12)
        bar = np.stack(
            [end + (sign * side - end) * np.minimum(1, 3 * t), centre[1] + 3 + 0 * t, front - 9 - t * 108], axis=1
        )
        parts.append(_tube(bar, 0.8 * thick, colour))
    t = np.linspace(-1, 1, 9)
    inner = float(np.abs(head.eyes[:, 0]).mean()) * 1.06 - half
    y = float(head.eyes[:, 1].mean()) + 4 - 2 * np.square(t)
    parts.append(_tube(np.stack([inner * t, y, front + 1.5 - 1.5 * np.square(t)], axis=1), thick, colour))
    return parts


def _tube(path: Floats, radius: float, colour: Floats) -> Part:
    """A tube of six sides along `path` (N, 3)."""
    along = np.gradient(path, axis=0)
    along /= np.linalg.norm(along, axis=1, keepdims=True) + 1e-9
    aside = np.cross(along, np.array([0.1, 0.2, 1.0]))
    aside /= np.linalg.norm(aside, axis=1, keepdims=True) + 1e-9
    across = np.cross(along, aside)
    turn = np.linspace(0, 2 * math.pi, 7)
    ring = np.cos(turn)[None, :, None] * aside[:, None] + np.sin(turn)[None, :, None] * across[:, None]
    points = (path[:, None] + radius * ring).astype(np.float32)
    count = points.shape[0] * points.shape[1]
    return Part(
        points, grid_triangles(*points.shape[:2]), np.tile(colour, (count, 1)).astype(np.float32), 0.8, 0.0, True
    )
