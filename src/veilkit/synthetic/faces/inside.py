"""What shows through the slits of a face: eyeballs that turn with the gaze; teeth, tongue and the dark behind."""

from __future__ import annotations

import numpy as np

from veilkit.synthetic.arrays import Floats, bell, step
from veilkit.synthetic.colours import linear
from veilkit.synthetic.faces.expression import Opening
from veilkit.synthetic.faces.identity import Face
from veilkit.synthetic.faces.lens import Lens
from veilkit.synthetic.faces.raster import Canvas, Fragments, Paint, look_up, nearest
from veilkit.synthetic.faces.sculpt import BALL

IRIS = 5.9  # radius
_SIDES = np.array([16.0, BALL, BALL], np.float32)  # what the lids lie on is longer than round


def draw_eye(
    canvas: Canvas,
    lens: Lens,
    hole: tuple[Fragments, Floats],
    centre: Floats,
    gaze: Floats,
    lamp: Floats,
    face: Face,
    opening: Opening,
) -> None:
    """The eyeball behind `hole`. gaze: where it looks (3,), head frame. lamp: towards the light, camera frame."""
    found, place = hole
    if not found.pixel.size:
        return
    won = nearest(found)
    found, place = found.pick(won), place[won]
    front = found.near > canvas.near[found.pixel]
    found, place = found.pick(front), place[front]
    if not found.pixel.size:
        return
    x = (found.pixel % canvas.width + 0.5).astype(np.float32)
    y = (found.pixel // canvas.width + 0.5).astype(np.float32)
    seen = lens.to_head(lens.points(x, y, found.near))
    eye = lens.to_head(np.array([[0.0, 0.0, lens.distance]], np.float32))
    ray = seen - eye
    ray /= np.linalg.norm(ray, axis=1, keepdims=True)
    start, ray_ = (eye - centre) / _SIDES, ray / _SIDES
    aa, bb, cc = (ray_ * ray_).sum(1), (ray_ * start).sum(1), (start * start).sum(1) - 1
    along = (-bb - np.sqrt(np.maximum(bb * bb - aa * cc, 0))) / aa
    at = eye + along[:, None] * ray - centre
    unit = at / np.linalg.norm(at, axis=1, keepdims=True)
    # Distance from the middle of the iris, in millimetres over the ball.
    off = BALL * np.arccos(np.clip(unit @ gaze, -1, 1))
    normal = at / np.square(_SIDES)
    normal /= np.linalg.norm(normal, axis=1, keepdims=True)
    cornea = step(off, 7.5, 3.0)[:, None]
    bulge = normal + 0.7 * cornea * (unit - gaze)  # the cornea is rounder than the ball
    colour = _eye_colour(face, off, unit, gaze)
    top, bottom = opening.edges(place[:, 0])
    shade = (
        1 - 0.55 * bell(np.maximum(top - place[:, 1], 0), 1.7) - 0.18 * bell(np.maximum(place[:, 1] - bottom, 0), 1.2)
    )
    ends = step(opening.half - np.abs(np.abs(place[:, 0]) - 31.5), 0.0, 3.5)
    colour *= (shade * (0.6 + 0.4 * ends))[:, None]
    matrix = lens.pose.matrix()
    world = (bulge @ matrix.T).astype(np.float32)
    world /= np.linalg.norm(world, axis=1, keepdims=True)
    half = lamp + np.array([0, 0, 1], np.float32)
    half = half / np.linalg.norm(half)
    glint = step(world @ half, 0.986, 0.995) * step(off, IRIS + 0.5, IRIS - 1.5) * step(top - place[:, 1], 0.3, 1.2)
    colour += 0.6 * glint[:, None]
    near = np.minimum(found.near, 1000 / (lens.distance - lens.turn(at + centre)[:, 2])).astype(np.float32)
    canvas.put(found.pixel, near, world, Paint(colour.astype(np.float32), 0.25, 0.35))


def _eye_colour(face: Face, off: Floats, unit: Floats, gaze: Floats) -> Floats:
    side = np.cross(gaze, np.array([0, 1, 0], np.float32))
    up = np.cross(side, gaze)
    turn = np.arctan2(unit @ up, unit @ side)
    rays = look_up("strands", 6 * off, 512 / (2 * np.pi) * turn, face.texture)
    iris = linear(face.complexion.iris)
    white = np.array([0.50, 0.47, 0.44], np.float32) * (1 - 0.012 * np.maximum(off - 7, 0))[:, None]
    inner = (1 + 0.18 * rays + 0.5 * bell(off - 3.4, 0.9))[:, None] * iris * 1.25
    ring = step(off, 4.7, 5.9)[:, None]
    inner = inner * (1 - 0.72 * ring)
    inner = inner * step(off, 1.9, 2.5)[:, None] + 0.004
    inside = step(off, IRIS + 0.35, IRIS - 0.35)[:, None]
    return np.asarray(white * (1 - inside) + inner * inside, np.float32)


def draw_mouth(
    canvas: Canvas,
    hole: tuple[Fragments, Floats] | None,
    points: Floats,
    gap: Floats,
    line: float,
    drop: float,
    face: Face,
) -> None:
    """Teeth and tongue behind the slit of the mouth.

    points: (V, 3) of the head before it is turned. gap: how far the lips are apart at each vertex. line: height of
    the closed mouth; drop: millimetres by which the lower teeth have gone down.
    """
    if hole is None or not hole[0].pixel.size:
        return
    found = hole[0]
    found = found.pick(nearest(found))
    found = found.pick(found.near > canvas.near[found.pixel])
    if not found.pixel.size:
        return
    at, wide = found.values(points), found.values(gap)
    x, y = at[:, 0], at[:, 1]
    upper_end = line - 3.0 + 0.006 * np.square(x)
    lower_end = line - 3.8 - drop + 0.004 * np.square(x)
    # Teeth stand on an arch: farther to the side they are narrower and darker.
    arch = np.arcsin(np.clip(x / 24, -1, 1)) * 24
    seams = 1 - 0.35 * bell(np.mod(arch + 4.2, 8.4) - 4.2, 0.45)
    gums = step(y, line + 9.5, line + 8.0)
    depth = np.clip(1 - np.abs(x) / 24, 0, 1) ** 0.6
    teeth = np.array([0.66, 0.62, 0.54], np.float32) * (seams * (0.25 + 0.75 * depth))[:, None]
    gum = np.array([0.38, 0.14, 0.13], np.float32)
    teeth = teeth * gums[:, None] + gum * (1 - gums[:, None])
    dark = np.array([0.035, 0.012, 0.011], np.float32)
    tongue_top = line - 4.0 - 0.85 * drop - 0.012 * np.square(x)
    tongue = step(y, tongue_top + 2.5, tongue_top - 3) * step(np.abs(x), 20, 12)
    back = dark + tongue[:, None] * (np.array([0.36, 0.12, 0.11], np.float32) - dark) * min(1.0, drop / 8)
    show = np.maximum(step(y, upper_end - 0.4, upper_end + 0.4), 0.8 * step(y, lower_end + 0.4, lower_end - 0.4))
    colour = back + show[:, None] * (teeth - back)
    lip = linear(face.complexion.lips) * 0.22
    closed = step(wide, 2.6, 1.2)[:, None]
    colour = colour * (1 - closed) + lip * closed
    # The lips shade what is just behind them.
    normal = np.stack([x / 30, np.zeros_like(x), np.ones_like(x)], axis=1).astype(np.float32)
    normal /= np.linalg.norm(normal, axis=1, keepdims=True)
    canvas.put(found.pixel, found.near, normal, Paint(colour.astype(np.float32), 0.15, 0.3))
