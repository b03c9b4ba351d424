"""Hair: a shell over the scalp, and what hangs from it."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from veilkit.synthetic.arrays import Floats, Reals, bell, curve, step
from veilkit.synthetic.colours import linear
from veilkit.synthetic.faces.identity import Coiffure, Face
from veilkit.synthetic.faces.raster import Fragments, Ints, Paint, grid_normals, look_up
from veilkit.synthetic.faces.skin import hairline
from veilkit.synthetic.faces.template import grid_triangles, template


@dataclass(slots=True)
class Lock:
    """A sheet of hair: points on a grid; at each vertex down (along the strands), across, and what it is inside its
    edge.

    down, across: millimetres. inside: millimetres from the edge; strands end where it is negative.
    """

    points: Floats
    triangles: Ints
    down: Reals
    across: Reals
    inside: Reals
    ragged: float

    def places(self) -> Floats:
        """(V, 3) of down, across, inside."""
        return np.stack([self.down.ravel(), self.across.ravel(), self.inside.ravel()], axis=1).astype(np.float32)


class Strands:
    """Paints and frays one sheet of hair."""

    def __init__(self, face: Face, lock: Lock) -> None:
        self.face, self.lock, self.table = face, lock, lock.places()

    def keep(self, found: Fragments) -> NDArray[np.bool_]:
        """Strands end unevenly."""
        place = found.values(self.table)
        fray = look_up("strands", 0.7 * place[:, 0], 5 * place[:, 1], self.face.texture)
        return np.asarray(place[:, 2] + self.lock.ragged * fray > 0)

    def paint(self, found: Fragments) -> Paint:
        """Fibres lighter and darker than the hair's colour."""
        place = found.values(self.table)
        hair = self.face.hair
        fibre = look_up("strands", 0.7 * place[:, 0], 5 * place[:, 1], self.face.texture)
        lump = look_up("strands", 0.3 * place[:, 0], 1.5 * place[:, 1], self.face.texture + 99)
        curls = look_up("curls", 3.5 * place[:, 0], 3.5 * place[:, 1], self.face.texture)
        curly = 0.8 if hair.style == "afro" else 0.0
        tuft = curls * (0.6 + 0.4 * lump)
        pattern = (1 - 0.7 * curly) * (0.65 * fibre + 0.5 * lump) + curly * 0.7 * tuft
        edge = 1 - 0.25 * bell(np.maximum(place[:, 2], 0), 3.0)
        contrast = 0.28 - 0.16 * float(np.mean(hair.colour))  # light hair is seen through
        shade = np.clip(1 + contrast * pattern, 0.35, 1.9) * edge
        colour = linear(hair.colour) * shade[:, None] + 0.004
        normal = np.stack([0.22 * fibre + 0.5 * curly * curls, 0.10 * lump + 0.4 * curly * curls, 0 * fibre], axis=1)
        return Paint(
            colour.astype(np.float32), (0.85 - 0.55 * curly) * (0.7 + 0.3 * np.clip(fibre, -1, 2)), 0.0, normal
        )


def locks(face: Face, head: Floats) -> list[Lock]:
    """The sheets of hair of a face whose head has the points `head` (rows, columns, 3) before it is turned."""
    hair = face.hair
    if hair.style in ("bald", "buzz"):
        return []
    sheets = [_shell(face, head)]
    if hair.style in ("bob", "long"):
        sheets.append(_fall(face, head))
    if hair.style == "bun":
        sheets.append(_bun(face, head))
    return sheets


def _edge(hair: Coiffure, angle: Floats) -> Floats:
    """v of the lower edge of the shell: the hairline, or lower where hair falls over the forehead."""
    line = hairline(hair, angle)
    turn = angle * np.float32(180 / math.pi)
    if hair.style == "fringe":
        low = 34 - 10 * hair.length + 5 * hair.part * turn / 40
        cover = step(np.abs(turn), 68, 48)
        return np.asarray(line + cover * (np.minimum(line, low) - line), np.float32)
    if hair.style in ("bob", "long", "swept"):
        where = 28 * hair.part
        low = (
            line
            - 3
            - (9 if hair.style != "swept" else 5) * bell(np.abs(turn - where) - 34, 13) * step(np.abs(turn), 75, 60)
        )
        return np.asarray(low, np.float32)
    return line


def _shell(face: Face, head: Floats) -> Lock:
    hair, mould = face.hair, template()
    rows = int(np.searchsorted(-mould.v[:, 0], 80))
    points, angle, v = head[:rows], mould.angle[:rows], mould.v[:rows]
    turn = np.abs(angle) * np.float32(180 / math.pi)
    edge = _edge(hair, angle)
    inside = v - edge
    volume = hair.volume
    top, sides, lift = {
        "short": (6 + 10 * volume, 3 + 5 * volume, 16.0),
        "swept": (9 + 12 * volume, 3 + 4 * volume, 9.0),
        "fringe": (8 + 8 * volume, 6 + 5 * volume, 5.0),
        "bob": (8 + 8 * volume, 5 + 6 * volume, 10.0),
        "long": (7 + 8 * volume, 4 + 6 * volume, 10.0),
        "afro": (30 + 30 * volume, 26 + 28 * volume, 22.0),
        "bun": (4 + 4 * volume, 3 + 3 * volume, 12.0),
    }[hair.style]
    thick = sides + (top - sides) * step(v, 40, 88)
    thick = thick * (0.12 + 0.88 * step(inside, -2, lift)) * (0.3 + 0.7 * step(v, -15, 45)) + 1.2
    if hair.style in ("bob", "long"):
        gap = bell(angle * np.float32(180 / math.pi) - 28 * hair.part, 5) * step(turn, 90, 60)
        thick = thick * (1 - 0.45 * gap)
    if hair.style in ("short", "afro"):
        thick = thick * (
            1 + (0.05 if hair.style == "afro" else 0.12) * look_up("soft", 3 * v, 90 * angle, face.texture)
        )
    if hair.style == "swept":
        thick = thick * (1 + 0.28 * hair.part * np.sin(angle) * step(v, 50, 90))
    normal = grid_normals(points, closed=True)
    normal[:2] = (0, 1, 0)
    out = points + thick[..., None] * normal
    ragged = {"short": 2.2, "swept": 1.8, "fringe": 2.6, "afro": 2.0}.get(hair.style, 1.2)
    down = 118 - v + 0 * angle
    return Lock(out.astype(np.float32), grid_triangles(*v.shape), down, 62 * angle, inside, ragged)


def _fall(face: Face, head: Floats) -> Lock:
    """Hair that hangs beside and behind the face."""
    hair = face.hair
    end = -70 - 45 * hair.length if hair.style == "bob" else -150 - 130 * hair.length
    height = np.concatenate([np.linspace(78, -20, 12), np.linspace(-30, end, 18)]).astype(np.float32)
    angle = np.linspace(-math.pi, math.pi, 81).astype(np.float32)
    wide = float(np.abs(head[..., 0]).max())
    full = 5 + 8 * hair.volume
    half = curve(height, (-260, wide + 4 + full), (-110, wide - 4 + full), (-50, wide + 4 + full),
                 (20, wide + 4 + full),
                 (60, wide + full - 2), (80, wide - 8 + full))  # fmt: skip
    wave = (
        1
        + 0.035 * hair.curl * np.sin(height * 0.09)[:, None]
        + 0.012
        * look_up("strands", 0.2 * height[:, None] + 0 * angle, 30 * angle + 0 * height[:, None], face.texture)
    )
    sin, cos = np.sin(angle), np.cos(angle)
    ahead = curve(height, (-260, 70), (-120, 74), (-40, 80), (30, 84), (80, 74))[:, None]
    behind = curve(height, (-260, 75), (-120, 80), (-40, 95), (30, 112), (80, 100))[:, None]
    z = -82 + np.where(cos > 0, ahead, behind) * cos * wave
    x = half[:, None] * wave * sin
    y = height[:, None] + 0 * angle
    turn = np.abs(angle) * np.float32(180 / math.pi)
    opening = curve(
        height, (-260, 48), (-110, 57 - 6 * hair.length), (-60, 61), (0, 61), (40, 52), (64, 40), (80, 30)
    )
    inside = (turn[None] - opening[:, None]) * 1.3
    inside = np.minimum(inside, (height - end)[:, None] + 0 * angle)
    points = np.stack([x, y, z], axis=2).astype(np.float32)
    down = (118 - height)[:, None] + 0 * angle
    return Lock(points, grid_triangles(*points.shape[:2]), down, 62 * angle + 0 * height[:, None], inside, 2.2)


def _bun(face: Face, head: Floats) -> Lock:
    """A knot on top of the head."""
    top = float(head[..., 1].max())
    size = 22 + 10 * face.hair.volume
    tall, turn = np.linspace(math.pi / 2, -math.pi / 2, 14)[:, None], np.linspace(-math.pi, math.pi, 33)[None, :]
    ring = np.cos(tall) * (1 + 0.05 * np.sin(6 * turn + 5 * tall))
    x, y, z = size * ring * np.sin(turn), size * 0.8 * np.sin(tall) + 0 * turn, size * ring * np.cos(turn)
    points = np.stack([x, top + 0.45 * size + y, -98 + z], axis=2).astype(np.float32)
    down, across = 30 * turn + 0 * tall, 40 * tall + 8 * turn
    return Lock(points, grid_triangles(*points.shape[:2]), down, across, np.full(down.shape, 99.0), 0.0)
