"""One face drawn, and lit by a lamp with soft shadows and by the sky, with shade in hollows."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from veilkit.synthetic.arrays import Floats, Reals, blur, resize, step
from veilkit.synthetic.faces.capture import Light
from veilkit.synthetic.faces.expression import Actions, eye_opening, jaw_turn, move
from veilkit.synthetic.faces.hair import Strands, locks
from veilkit.synthetic.faces.identity import Face
from veilkit.synthetic.faces.inside import draw_eye, draw_mouth
from veilkit.synthetic.faces.lens import Angles, Lens
from veilkit.synthetic.faces.parts import Part, Trunk, ear, glasses
from veilkit.synthetic.faces.raster import Canvas, Fragments, Ints, Paint, cover, grid_normals
from veilkit.synthetic.faces.sculpt import sculpt
from veilkit.synthetic.faces.skin import Skin
from veilkit.synthetic.faces.template import MOUTH, sample, template

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


_MAP, _SPAN, _FINE = 112, 460.0, 4  # pixels and millimetres of the shadow map; how much finer it is looked up


class Shadow:
    """A depth map from the lamp's side."""

    def __init__(self, light: Light, centre: Floats, meshes: list[tuple[Floats, Ints]]) -> None:
        toward = light.direction()
        right = np.cross(np.array([0, 1, 0], np.float32), toward)
        right /= np.linalg.norm(right)
        self.axes = np.stack([right, -np.cross(toward, right), toward]).astype(np.float32)
        self.centre = centre
        depth = np.full(_MAP * _MAP, -1e3, np.float32)
        for points, triangles in meshes:
            found = cover(self._place(points), triangles, _MAP, _MAP, both_sides=True)
            np.maximum.at(depth, found.pixel, found.near)
        self.depth = resize(depth.reshape(_MAP, _MAP), _MAP * _FINE, _MAP * _FINE)

    def _place(self, points: Floats) -> Floats:
        placed = (points - self.centre) @ self.axes.T
        placed[:, :2] = placed[:, :2] * np.float32(_MAP / _SPAN) + np.float32(_MAP / 2)
        return np.asarray(placed, np.float32)

    def lit(self, points: Floats) -> Floats:
        """1 in the light, 0 in the shadow, for camera points (N, 3)."""
        placed = self._place(points)
        total = np.zeros(len(points), np.float32)
        for dx, dy in ((-0.9, -0.4), (0.9, 0.4), (-0.4, 0.9), (0.4, -0.9)):
            x = np.clip((placed[:, 0] + dx) * _FINE, 0, _MAP * _FINE - 1).astype(np.int32)
            y = np.clip((placed[:, 1] + dy) * _FINE, 0, _MAP * _FINE - 1).astype(np.int32)
            total += np.clip(1 - (self.depth[y, x] - placed[:, 2] - 6.0) / 9.0, 0, 1)
        return np.asarray(total / 4, np.float32)


def shade(canvas: Canvas, lens: Lens, light: Light, shadow: Shadow) -> tuple[Floats, Floats]:
    """Linear colour (H, W, 3) and coverage (H, W) of what was drawn."""
    solid = np.flatnonzero(canvas.near > 0)
    x = (solid % canvas.width + 0.5).astype(np.float32)
    y = (solid // canvas.width + 0.5).astype(np.float32)
    near = canvas.near[solid]
    points = lens.points(x, y, near)
    normal, deep = canvas.normal[solid], canvas.depth[solid][:, None]
    toward = light.direction()
    facing = (normal @ toward)[:, None]
    wrap = deep * np.array([0.30, 0.16, 0.11], np.float32) + 0.04
    direct = np.clip((facing + wrap) / (1 + wrap), 0, None)
    open_ = shadow.lit(points)[:, None]
    through = deep * np.array([0.16, 0.04, 0.02], np.float32)
    open_ = open_ + (1 - open_) * through
    closeness = _hollows(canvas, lens, solid, near)[:, None]
    warm = np.array([1 + light.warmth, 1.0, 1 - light.warmth], np.float32)
    cool = np.array([1 - 0.4 * light.warmth, 1.0, 1 + 0.4 * light.warmth], np.float32)
    sky = (0.72 + 0.28 * normal[:, 1:2]) * closeness * (0.72 + 0.28 * np.clip(normal[:, 2:] * 1.5, 0, 1))
    sky = sky * light.sky * cool * (1 + deep * (1 - closeness) * np.array([0.25, 0.0, -0.05], np.float32))
    view = np.array([0, 0, 1], np.float32)
    half = toward + view
    half /= np.linalg.norm(half)
    gloss = canvas.gloss[solid][:, None]
    shine = gloss * light.lamp * open_ * np.clip(normal @ half, 0, 1)[:, None] ** 22 * 0.13
    sheen = gloss * light.sky * np.clip(1 - normal[:, 2:], 0, 1) ** 3 * 0.06 * closeness
    back = np.clip(-0.75 * normal[:, 2:] + 0.66 * np.sign(-light.azimuth) * normal[:, :1] - 0.1, 0, 1)
    lit = canvas.colour[solid] * (light.lamp * direct * open_ * warm + sky + 1.5 * light.rim * back)
    picture = np.zeros((canvas.height * canvas.width, 3), np.float32)
    picture[solid] = lit + shine * warm + sheen
    mask = np.zeros(canvas.height * canvas.width, np.float32)
    mask[solid] = 1
    return picture.reshape(canvas.height, canvas.width, 3), mask.reshape(canvas.height, canvas.width)


def _hollows(canvas: Canvas, lens: Lens, solid: NDArray[np.int64], near: Floats) -> Floats:
    """1 in the open, towards 0 where nearer surfaces surround a place."""
    away = lens.distance - 1000 / near
    table = np.zeros(canvas.height * canvas.width, np.float32)
    table[solid] = away + 1000
    mask = (table > 0).astype(np.float32)
    shape = canvas.height, canvas.width
    small = max(1, canvas.height // 2), max(1, canvas.width // 2)
    table_, mask_ = resize(table.reshape(shape), *small), resize(mask.reshape(shape), *small)
    result = np.ones(len(solid), np.float32)
    # Two reaches: folds of skin, and the shade of nose, brow and hair.
    for size, reach, strength in ((3.5, 7.0, 0.5), (11.0, 22.0, 0.45)):
        sigma = max(0.6, size * lens.scale / 2)
        mean = blur(table_, sigma) / np.maximum(blur(mask_, sigma), 1e-3)
        over = resize(mean.astype(np.float32), *shape).ravel()[solid] - 1000 - away
        result *= 1 - strength * np.clip(over / reach, 0, 1)
    return result
