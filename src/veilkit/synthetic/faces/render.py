"""One face drawn: meshes, slits, hair, light; and where its landmarks are."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from veilkit.synthetic.faces.expression import Actions
from veilkit.synthetic.faces.forms import Reals, step
from veilkit.synthetic.faces.hair import Strands, locks
from veilkit.synthetic.faces.identity import Face
from veilkit.synthetic.faces.inside import draw_eye, draw_mouth
from veilkit.synthetic.faces.lens import Angles, Lens
from veilkit.synthetic.faces.light import Light, Shadow, shade
from veilkit.synthetic.faces.moves import eye_opening, jaw_turn, move
from veilkit.synthetic.faces.parts import Part, Trunk, ear, glasses
from veilkit.synthetic.faces.raster import Canvas, Fragments, Ints, Paint, grid_normals
from veilkit.synthetic.faces.sculpt import sculpt
from veilkit.synthetic.faces.skin import Skin
from veilkit.synthetic.faces.template import MOUTH, sample, template
from veilkit.synthetic.view import Floats

sculpted = lru_cache(maxsize=256)(sculpt)


@dataclass(frozen=True, slots=True)
class Drawn:
    """Linear colour times coverage (H, W, 3), coverage (H, W).

    points: of the head (rows, columns, 3), camera frame. eyes: middles of the eyeballs (2, 3), head frame."""

    colour: Floats
    cover: Floats
    points: Floats
    eyes: Floats
    canvas: Canvas


def place_head(points: Floats, lens: Lens) -> Floats:
    """Head points (rows, columns, 3) to the camera frame; the neck bends between head and trunk."""
    v = template().v[..., None]
    loose = step(v, -125, -205)
    return np.asarray((1 - loose) * lens.turn(points) + loose * lens.turn_body(points), np.float32)


def draw(face: Face, actions: Actions, gaze: Angles, lens: Lens, light: Light, size: tuple[int, int]) -> Drawn:
    """Draw one person on an empty canvas of `size` (height, width)."""
    mould, head = template(), sculpted(face.shape)
    points = move(head, face.shape, actions)
    opening = eye_opening(face.shape, actions, gaze.pitch)
    places = np.stack([mould.u.ravel(), mould.v.ravel(), mould.angle.ravel()], axis=1)
    skin = Skin(face, actions, opening, places)
    canvas = Canvas(*size)
    placed = place_head(points, lens)
    casters: list[tuple[Floats, Ints]] = [(placed.reshape(-1, 3), mould.triangles)]
    normals = grid_normals(placed, closed=True).reshape(-1, 3)
    canvas.draw(lens.screen(placed).reshape(-1, 3), mould.triangles, normals, skin.paint, skin.keep)
    for hole, centre in zip(skin.eye_holes, head.eyes, strict=True):
        draw_eye(canvas, lens, hole, centre, gaze.direction(), light.direction(), face, opening)
    upper, lower = (
        int(np.argmin(np.abs(mould.v[:, 0] - MOUTH - 0.5))),
        int(np.argmin(np.abs(mould.v[:, 0] - MOUTH + 0.5))),
    )
    gap = np.broadcast_to((points[upper, :, 1] - points[lower, :, 1])[None], mould.u.shape).ravel()
    middle = sample(head.points, *mould.at(np.zeros(1, np.float32), np.full(1, MOUTH, np.float32)))[0]
    draw_mouth(canvas, skin.mouth_hole, points.reshape(-1, 3), gap, float(middle[1]), 80 * jaw_turn(actions), face)
    worn = (ear(face, head, -1), ear(face, head, 1), *glasses(face, head))
    casters += [_draw_part(canvas, lens, part) for part in worn]
    trunk = Trunk(face)
    there = lens.turn_body(trunk.points)
    normals = grid_normals(there, closed=True).reshape(-1, 3)
    canvas.draw(lens.screen(there).reshape(-1, 3), trunk.triangles, normals, trunk.paint)
    casters.append((there.reshape(-1, 3), trunk.triangles))
    for lock in locks(face, points):
        there = lens.turn(lock.points)
        strands = Strands(face, lock)
        up = grid_normals(there, closed=True).reshape(-1, 3)
        canvas.draw(
            lens.screen(there).reshape(-1, 3), lock.triangles, up, strands.paint, strands.keep, both_sides=True
        )
        casters.append((there.reshape(-1, 3), lock.triangles[_kept(lock.inside, lock.triangles)]))
    centre = lens.turn(np.array([[0.0, -20.0, -60.0]], np.float32))[0]
    colour, cover = shade(canvas, lens, light, Shadow(light, centre, casters))
    return Drawn(colour, cover, placed, head.eyes, canvas)


def _kept(inside: Reals, triangles: Ints) -> NDArray[np.bool_]:
    return np.asarray((inside.ravel()[triangles] > 0).all(axis=1), bool)


def _draw_part(canvas: Canvas, lens: Lens, part: Part) -> tuple[Floats, Ints]:
    there = lens.turn(part.points)

    def paint(found: Fragments) -> Paint:
        return Paint(found.values(part.colour), part.gloss, part.depth)

    normals = grid_normals(there, closed=part.closed).reshape(-1, 3)
    canvas.draw(lens.screen(there).reshape(-1, 3), part.triangles, normals, paint, both_sides=True)
    return there.reshape(-1, 3), part.triangles
