"""Curved surfaces drawn into a depth buffer: limbs (tapered capsules) and lofts (stacks of ellipses or boxes).

Each surface is solved per pixel in closed form over its bounding box; a material then colours the pixels that are
nearest to the viewer so far. Lighting comes later, from the normals kept here.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.interpolate import PchipInterpolator

from veilkit.synthetic.view import Floats, View


@dataclass(slots=True)
class Spots:
    """The N visible points of one surface, where a material is asked for colours.

    around: radians round the axis, 0 in front, positive to the body's right-hand side of the picture.
    along: 0 at the start of the surface to 1 at its end. side, down: distances over the surface, in statures.
    """

    around: Floats
    along: Floats
    side: Floats
    down: Floats


Material = Callable[[Spots], Floats]
"""Spots to linear colours (N, 3)."""

Keep = Callable[[Spots], NDArray[np.bool_]]
"""Which spots exist: cuts hems, hairlines and openings."""


class Canvas:
    """The buffers of one figure: depth, linear colour, normal (x right, y down, z to the viewer) and gloss."""

    def __init__(self, height: int, width: int) -> None:
        self.depth: Floats = np.full((height, width), -1e6, np.float32)
        self.colour: Floats = np.zeros((height, width, 3), np.float32)
        self.normal: Floats = np.zeros((height, width, 3), np.float32)
        self.gloss: Floats = np.zeros((height, width), np.float32)

    def window(self, left: float, right: float, top: float, bottom: float) -> tuple[slice, slice] | None:
        """The rows and columns that the box covers, or None where it misses the canvas."""
        height, width = self.depth.shape
        c0, c1 = max(0, math.floor(left)), min(width, math.ceil(right) + 1)
        r0, r1 = max(0, math.floor(top)), min(height, math.ceil(bottom) + 1)
        return None if c0 >= c1 or r0 >= r1 else (slice(r0, r1), slice(c0, c1))


@dataclass(frozen=True, slots=True)
class Finish:
    """What a surface is made of. folds: how far wrinkles bend the normal. gloss: strength of the highlight."""

    material: Material
    folds: float = 0.0
    gloss: float = 0.0
    grain: tuple[float, float] = (1.0, 1.0)
    offset: tuple[float, float] = (0.0, 0.0)


def _noise_slopes(size: int = 256) -> Floats:
    """Slopes (2, size, size) of a fixed, tileable, smooth random height: the wrinkles of cloth."""
    rng = np.random.Generator(np.random.PCG64(20_11))
    fy = np.fft.fftfreq(size)[:, None] * size
    fx = np.fft.fftfreq(size)[None, :] * size
    radius = np.hypot(fx, fy)
    spectrum = np.exp(-((radius / 14.0) ** 2)) * (radius > 0.5) / np.maximum(radius, 1.0) ** 0.6
    wave = spectrum * np.exp(2j * np.pi * rng.random((size, size)))
    slopes = np.stack([np.fft.ifft2(wave * fx * 1j).real, np.fft.ifft2(wave * fy * 1j).real])
    return np.asarray(slopes / slopes.std(), np.float32)


_SLOPES = _noise_slopes()
_TILES_PER_STATURE = 420.0


def _paint(
    canvas: Canvas,
    window: tuple[slice, slice],
    pick: NDArray[np.bool_],
    depth: Floats,
    normal: tuple[Floats, Floats, Floats],
    spots: Spots,
    finish: Finish,
    keep: Keep | None,
) -> None:
    """Write the picked pixels of `window`; depth, normal and spots hold one value per picked pixel."""
    rows, cols = np.nonzero(pick)
    rows += window[0].start
    cols += window[1].start
    nx, ny, nz = normal
    if keep is not None:
        kept = np.flatnonzero(keep(spots))
        rows, cols, depth = rows[kept], cols[kept], depth[kept]
        nx, ny, nz = nx[kept], ny[kept], nz[kept]
        spots = Spots(spots.around[kept], spots.along[kept], spots.side[kept], spots.down[kept])
    if rows.size == 0:
        return
    if finish.folds:
        i = ((spots.down * finish.grain[1] + finish.offset[1]) * _TILES_PER_STATURE).astype(np.int32) & 255
        j = ((spots.side * finish.grain[0] + finish.offset[0]) * _TILES_PER_STATURE).astype(np.int32) & 255
        nx = nx + finish.folds * _SLOPES[0, i, j]
        ny = ny + finish.folds * _SLOPES[1, i, j]
        size = 1.0 / np.sqrt(nx * nx + ny * ny + nz * nz)
        nx, ny, nz = nx * size, ny * size, nz * size
    canvas.depth[rows, cols] = depth
    canvas.colour[rows, cols] = finish.material(spots)
    canvas.normal[rows, cols] = np.stack([nx, ny, nz], axis=1)
    canvas.gloss[rows, cols] = finish.gloss


def limb(
    canvas: Canvas,
    view: View,
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
    _paint(canvas, window, pick, depth[pick], (nx, ny, nz), spots, finish, keep)


def loft(
    canvas: Canvas,
    view: View,
    knots: Floats,
    finish: Finish,
    *,
    turn: float = 0.0,
    boxy: bool = False,
    keep: Keep | None = None,
) -> None:
    """A stack of upright ellipses (or boxes): knots (K, 5) of x, y, z, half width, half depth, from top to bottom.

    turn: radians that the stack is turned more than the body, as a head that looks aside.
    """
    knots = _smooth(knots)
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
    _paint(canvas, window, pick, depth[pick], (nx * size, ny * size, nz * size), spots, finish, keep)


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
