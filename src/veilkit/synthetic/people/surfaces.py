"""Curved surfaces: limbs (tapered capsules) and lofts (stacks of ellipses or boxes).

Each is solved per pixel in closed form over its bounding box.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from scipy.interpolate import PchipInterpolator

from veilkit.synthetic.arrays import Floats
from veilkit.synthetic.people.canvas import Canvas, Finish, Keep, Spots


def limb(
    canvas: Canvas,
    ends: Sequence[Floats],
    radii: tuple[float, float],
    finish: Finish,
    *,
    cut: bool = False,
    start: float = 0.0,
    keep: Keep | None = None,
) -> None:
    """A tapered capsule between two body points (3,); radii in statures. `cut` ends it flat, as a sleeve.

    start: the distance over the cloth at which this limb begins, so that patterns run on over joints.
    """
    view = canvas.view
    p, q = view.project(np.stack(ends))
    r0, r1 = radii[0] * view.scale, radii[1] * view.scale
    reach = max(r0, r1) + 1
    window = canvas.window(
        min(p[0], q[0]) - reach, max(p[0], q[0]) + reach, min(p[1], q[1]) - reach, max(p[1], q[1]) + reach
    )
    if window is None:
        return
    x = np.arange(window[1].start, window[1].stop, dtype=np.float32)[None, :] - p[0]
    y = np.arange(window[0].start, window[0].stop, dtype=np.float32)[:, None] - p[1]
    bx, by, bz = (float(v) for v in q - p)
    flat = bx * bx + by * by + 1e-3
    raw = (x * bx + y * by) / flat
    t = np.clip(raw, 0.0, 1.0)
    dx, dy = x - t * bx, y - t * by
    radius = r0 + (r1 - r0) * t
    height2 = radius * radius - dx * dx - dy * dy
    pick = height2 > 0
    if cut:
        pick &= raw <= 1.0
    height = np.sqrt(np.maximum(height2, 0.0))
    depth = p[2] + t * bz + height
    pick &= depth > canvas.depth[window]
    if not pick.any():
        return
    t, radius = t[pick], radius[pick]
    inverse = 1.0 / radius
    nx, ny, nz = dx[pick] * inverse, dy[pick] * inverse, height[pick] * inverse
    right, front = view.axes()
    around = np.arctan2(nx * right[0] + ny * right[1] + nz * right[2], nx * front[0] + ny * front[1] + nz * front[2])
    length = float(np.linalg.norm(ends[1] - ends[0]))
    spots = Spots(around, t, around * radius / view.scale, start + t * length)
    canvas.paint(window, pick, depth[pick], (nx, ny, nz), spots, finish, keep)


def loft(
    canvas: Canvas, knots: Floats, finish: Finish, *, turn: float = 0.0, boxy: bool = False, keep: Keep | None = None
) -> None:
    """A stack of upright ellipses (or boxes): knots (K, 5) of x, y, z, half width, half depth, from top to bottom.

    turn: radians that the stack is turned more than the body, as a head that looks aside.
    """
    view, knots = canvas.view, _smooth(knots)
    line = view.project(knots[:, :3])
    half = float(np.hypot(knots[:, 3], knots[:, 4]).max()) * view.scale
    lift = half * math.sin(view.pitch) + 1
    window = canvas.window(
        float(line[:, 0].min()) - half,
        float(line[:, 0].max()) + half,
        float(line[0, 1]) - lift,
        float(line[-1, 1]) + lift,
    )
    if window is None:
        return
    rows = np.arange(window[0].start, window[0].stop, dtype=np.float32)
    columns = np.arange(window[1].start, window[1].stop, dtype=np.float32)

    def at(values: Floats) -> Floats:
        return np.interp(rows, line[:, 1], values).astype(np.float32)[:, None]

    a = np.maximum(at(knots[:, 3]) * view.scale, 0.3)
    b = np.maximum(at(knots[:, 4]) * view.scale, 0.3)
    sin, cos = math.sin(view.yaw + turn), math.cos(view.yaw + turn)
    x = (columns[None, :] - at(line[:, 0])) / view.aspect
    if boxy:
        z, inside = _box_depth(x, a, b, sin, cos)
    else:
        za, zb, zc = (
            (sin / a) ** 2 + (cos / b) ** 2,
            sin * cos * (1 / b**2 - 1 / a**2),
            (cos / a) ** 2 + (sin / b) ** 2,
        )
        root = (zb * x) ** 2 - za * (zc * x * x - 1)
        inside = root > 0
        z = (np.sqrt(np.maximum(root, 0)) - zb * x) / za
    # A ring seen from above hangs lower where it is nearer: hems and stripes curve round the body.
    level = rows[:, None] - z * math.sin(view.pitch)
    depth = at(line[:, 2]) + z * math.cos(view.pitch)
    pick = inside & (level >= line[0, 1]) & (level <= line[-1, 1]) & (depth > canvas.depth[window])
    if not pick.any():
        return
    wide = np.sqrt((a * cos) ** 2 + (b * sin) ** 2)
    slope = np.broadcast_to(np.gradient(wide, axis=0) if len(rows) > 1 else np.zeros_like(wide), z.shape)[pick]
    x, z, level = np.broadcast_to(x, inside.shape)[pick], z[pick], level[pick]
    a, b = np.broadcast_to(a, inside.shape)[pick], np.broadcast_to(b, inside.shape)[pick]
    u, w = (x * cos - z * sin) / a, (x * sin + z * cos) / b
    power = 5 if boxy else 1
    gu, gw = u**power / a, w**power / b
    nx, nz = gu * cos + gw * sin, gw * cos - gu * sin
    size = np.hypot(nx, nz) + 1e-9
    nx, nz = nx / size, nz / size
    ny = -np.clip(slope, -3.0, 3.0)
    size = 1.0 / np.sqrt(1.0 + ny * ny)
    around = np.arctan2(u * a, w * b) if boxy else np.arctan2(u, w)
    along = (level - line[0, 1]) / max(float(line[-1, 1] - line[0, 1]), 1e-3)
    down = np.float32(knots[0, 1]) - np.interp(level, line[:, 1], knots[:, 1]).astype(np.float32)
    side = u * a / view.scale if boxy else around * (a + b) * (0.5 / view.scale)
    spots = Spots(around, along, side, down)
    canvas.paint(window, pick, depth[pick], (nx * size, ny * size, nz * size), spots, finish, keep)


def _smooth(knots: Floats) -> Floats:
    """`knots` with points between them on a curve that does not overshoot: no facets."""
    if len(knots) < 4:
        return knots
    at = np.arange(len(knots))
    fine = np.linspace(0, len(knots) - 1, 4 * len(knots) - 3)
    return PchipInterpolator(at, knots, axis=0)(fine).astype(np.float32)


def _box_depth(x: Floats, a: Floats, b: Floats, sin: float, cos: float) -> tuple[Floats, NDArray[np.bool_]]:
    """The nearest depth of a turned rectangle of half sides a, b at x, and where it has one."""
    sin = math.copysign(max(abs(sin), 1e-3), sin)
    cos = math.copysign(max(abs(cos), 1e-3), cos)
    u0, u1 = (x * cos - a) / sin, (x * cos + a) / sin
    w0, w1 = (-b - x * sin) / cos, (b - x * sin) / cos
    far = np.minimum(np.maximum(u0, u1), np.maximum(w0, w1))
    near = np.maximum(np.minimum(u0, u1), np.minimum(w0, w1))
    return far, far > near
