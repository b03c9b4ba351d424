"""Triangles to pixels: a depth buffer that keeps colour, normal and gloss of the nearest surface; tiles of noise."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from veilkit.synthetic.arrays import Floats, Reals

Ints = NDArray[np.int32]


@dataclass(slots=True)
class Fragments:
    """N covered pixels: flat number, nearness, and the corners with weights of the triangle that covers each."""

    pixel: NDArray[np.int64]
    near: Floats
    corners: Ints
    weights: Floats

    def pick(self, kept: NDArray[np.bool_] | NDArray[np.int64]) -> Fragments:
        """The fragments that `kept` names."""
        return Fragments(self.pixel[kept], self.near[kept], self.corners[kept], self.weights[kept])

    def values(self, per_vertex: Floats) -> Floats:
        """`per_vertex` (V, ...) interpolated at each fragment."""
        w = self.weights if per_vertex.ndim == 1 else self.weights[:, :, None]
        c = self.corners
        return np.asarray(
            w[:, 0] * per_vertex[c[:, 0]] + w[:, 1] * per_vertex[c[:, 1]] + w[:, 2] * per_vertex[c[:, 2]], np.float32
        )


@dataclass(slots=True)
class Paint:
    """What N fragments show: linear colour (N, 3), gloss (N,), how deep light goes in (N,), how normals are bent."""

    colour: Floats
    gloss: Reals | float = 0.0
    depth: Reals | float = 0.0
    normal: Floats | None = None


class Canvas:
    """near: larger is nearer, 0 where nothing is. normal: x right, y up, z to the viewer."""

    def __init__(self, height: int, width: int) -> None:
        self.height, self.width = height, width
        self.near: Floats = np.zeros(height * width, np.float32)
        self.colour: Floats = np.zeros((height * width, 3), np.float32)
        self.normal: Floats = np.zeros((height * width, 3), np.float32)
        self.gloss: Floats = np.zeros(height * width, np.float32)
        self.depth: Floats = np.zeros(height * width, np.float32)

    def draw(
        self,
        screen: Floats,
        triangles: Ints,
        normals: Floats,
        paint: Callable[[Fragments], Paint],
        keep: Callable[[Fragments], NDArray[np.bool_]] | None = None,
        *,
        both_sides: bool = False,
    ) -> None:
        """Draw a mesh: screen (V, 3) of x, y, nearness; normals (V, 3). `keep` cuts holes before depth counts."""
        found = cover(screen, triangles, self.height, self.width, both_sides=both_sides)
        found = found.pick(found.near > self.near[found.pixel])
        if keep is not None and found.pixel.size:
            found = found.pick(keep(found))
        if not found.pixel.size:
            return
        found = found.pick(nearest(found))
        normal = found.values(normals)
        normal /= np.linalg.norm(normal, axis=1, keepdims=True) + 1e-9
        if both_sides:
            normal *= np.where(normal[:, 2:] < 0, -1, 1).astype(np.float32)
        shown = paint(found)
        if shown.normal is not None:
            normal = normal + shown.normal
            normal /= np.linalg.norm(normal, axis=1, keepdims=True) + 1e-9
        self.put(found.pixel, found.near, normal, shown)

    def put(self, pixel: NDArray[np.int64], near: Floats, normal: Floats, shown: Paint) -> None:
        """Write pixels that are known to be nearest."""
        self.near[pixel] = near
        self.normal[pixel] = normal
        self.colour[pixel] = shown.colour
        self.gloss[pixel] = shown.gloss
        self.depth[pixel] = shown.depth


def nearest(found: Fragments) -> NDArray[np.int64]:
    """Which fragments win their pixel."""
    order = np.argsort(found.near, kind="stable")
    winner = np.full(int(found.pixel.max()) + 1, -1, np.int64)
    winner[found.pixel[order]] = order  # of repeated pixels the last stays: the nearest
    return winner[winner >= 0]


def cover(screen: Floats, triangles: Ints, height: int, width: int, *, both_sides: bool = False) -> Fragments:
    """All fragments of the triangles that face the viewer (or of all). Screen y runs down."""
    x, y = screen[:, 0], screen[:, 1]
    ax, bx, cx = (x[triangles[:, i]] for i in range(3))
    ay, by, cy = (y[triangles[:, i]] for i in range(3))
    area = (bx - ax) * (cy - ay) - (by - ay) * (cx - ax)
    left = np.maximum(np.ceil(np.minimum(np.minimum(ax, bx), cx) - 0.5), 0).astype(np.int32)
    right = np.minimum(np.floor(np.maximum(np.maximum(ax, bx), cx) - 0.5), width - 1).astype(np.int32)
    top = np.maximum(np.ceil(np.minimum(np.minimum(ay, by), cy) - 0.5), 0).astype(np.int32)
    bottom = np.minimum(np.floor(np.maximum(np.maximum(ay, by), cy) - 0.5), height - 1).astype(np.int32)
    faces = np.abs(area) > 1e-7 if both_sides else area < -1e-7
    kept = np.flatnonzero(faces & (right >= left) & (bottom >= top))
    wide, high = right[kept] - left[kept] + 1, bottom[kept] - top[kept] + 1
    count = wide * high
    owner = np.repeat(np.arange(len(kept)), count)
    inside = np.arange(len(owner)) - np.repeat(np.cumsum(count) - count, count)
    down = inside // wide[owner]
    column = left[kept][owner] + inside - down * wide[owner]
    row = top[kept][owner] + down
    tri = kept[owner]
    dx, dy = column + np.float32(0.5) - ax[tri], row + np.float32(0.5) - ay[tri]
    scale = 1 / area[tri]
    second = (dx * (cy - ay)[tri] - dy * (cx - ax)[tri]) * scale
    third = (dy * (bx - ax)[tri] - dx * (by - ay)[tri]) * scale
    first = 1 - second - third
    hit = np.flatnonzero((first >= -1e-4) & (second >= -1e-4) & (third >= -1e-4))
    weights = np.stack([first[hit], second[hit], third[hit]], axis=1).astype(np.float32)
    corners = triangles[tri[hit]]
    pixel = row[hit].astype(np.int64) * width + column[hit]
    near = (weights * screen[:, 2][corners]).sum(axis=1).astype(np.float32)
    return Fragments(pixel, near, corners, weights)


def grid_normals(points: Floats, *, closed: bool = False) -> Floats:
    """Smooth normals (rows, columns, 3) of a grid of points whose rows run down and columns to the right."""
    if closed:
        points = np.concatenate([points[:, -2:-1], points, points[:, 1:2]], axis=1)
    across = np.empty_like(points)
    across[:, 1:-1] = points[:, 2:] - points[:, :-2]
    across[:, 0], across[:, -1] = points[:, 1] - points[:, 0], points[:, -1] - points[:, -2]
    down = np.empty_like(points)
    down[1:-1] = points[2:] - points[:-2]
    down[0], down[-1] = points[1] - points[0], points[-1] - points[-2]
    normal = np.cross(down, across)
    normal /= np.linalg.norm(normal, axis=2, keepdims=True) + 1e-9
    return np.asarray(normal[:, 1:-1] if closed else normal, np.float32)


_SIZE = 512


@lru_cache(maxsize=8)
def tile(kind: str) -> Floats:
    """A tileable noise (512, 512) of zero mean and unit deviation. Cached and shared: read only.

    soft: blotches. fine: pores. strands: fibres along the rows' direction. curls: round tufts.
    """
    rng = np.random.Generator(np.random.PCG64([ord(letter) for letter in kind]))
    fy = np.fft.fftfreq(_SIZE)[:, None] * _SIZE
    fx = np.fft.fftfreq(_SIZE)[None, :] * _SIZE
    radius = np.hypot(fx, fy) + 1e-6
    spectrum = {
        "soft": np.exp(-np.square(radius / 24)) / radius**0.8,
        "fine": np.exp(-np.square(radius / 150)) * (radius > 20),
        "strands": np.exp(-np.square(fy / 5) - np.square(fx / 130)) / (1 + np.abs(fx) / 30),
        "curls": np.exp(-np.square((radius - 45) / 22)),
    }[kind] * (radius > 0.5)
    noise = np.fft.ifft2(spectrum * np.exp(2j * np.pi * rng.random((_SIZE, _SIZE)))).real
    result = np.asarray(noise / noise.std(), np.float32)
    result.setflags(write=False)
    return result


def look_up(kind: str, down: Reals, across: Reals, seed: int) -> Floats:
    """The tile at places in tile pixels, moved by `seed`."""
    i = (down + (seed & 511)).astype(np.int32) & 511
    j = (across + (seed >> 9 & 511)).astype(np.int32) & 511
    return np.asarray(tile(kind)[i, j], np.float32)
