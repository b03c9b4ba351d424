"""The template of a head: a closed grid of rows (crown to neck) and columns (round the axis), before any feature.

Head frame: x to the right of the picture when the face looks at the viewer, y up, z out of the face; in millimetres
from the middle between the eyes. A place on the template has coordinates (u, v) that no identity and no expression
moves: u is its x on the average head, v its height there. Features, landmarks and colours are given in (u, v).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray
from scipy.interpolate import PchipInterpolator

from veilkit.synthetic.arrays import Floats

EYE = (31.5, 0.0)  # (u, v) of the middle of an eye
MOUTH = -67.0  # v of the line between the lips

# v, height, rise of the row towards the sides, half width, z of the widest place, z in front, z behind
KNOTS = np.array(
    [
        (118, 112.5, 0, 0.5, -82, -81.5, -82.5),
        (117, 111.6, 0, 14, -82, -66, -99),
        (114, 108.9, 0, 27, -82, -51, -116),
        (108, 103.5, 0, 41, -82, -34, -133),
        (96, 92.7, 0, 56, -82, -15, -155),
        (80, 78.3, 0, 67, -82, -2, -171),
        (62, 62.0, 0, 73, -82, 6.5, -179),
        (42, 42.0, 0, 75, -82, 10.5, -182),
        (20, 20.0, 0, 74, -82, 11, -181),
        (0, 0.0, 0, 72, -82, 7, -177),
        (-20, -20.0, 1, 71, -82, 6, -169),
        (-40, -40.0, 5, 69, -80, 8.5, -158),
        (-55, -55.0, 10, 66.5, -77, 11.5, -150),
        (-67, -67.0, 16, 63.5, -74, 11.5, -144),
        (-80, -80.0, 24, 59.5, -71, 7.5, -140),
        (-95, -95.0, 34, 53.5, -68, 7.5, -138),
        (-106, -106.0, 42, 48.5, -66, 4.0, -136),
        (-112, -111.5, 46, 44, -66, -2.0, -136),
        (-118, -114.0, 46, 42, -68, -12, -136),
        (-126, -114.5, 43, 43, -73, -25, -138),
        (-136, -115.0, 34, 46, -80, -38, -140),
        (-146, -121.0, 20, 49, -88, -46, -142),
        (-160, -138.0, 8, 51, -94, -50, -144),
        (-200, -172.0, 0, 54, -98, -50, -150),
        (-250, -215.0, 0, 66, -100, -44, -156),
    ],
    np.float64,
)
ROWS = np.concatenate(
    [
        [118, 117.4, 116],
        np.linspace(113, 32, 14),
        np.linspace(28, 15, 7),
        np.linspace(13.5, -13.5, 19),
        np.linspace(-15.5, -31, 8),
        np.linspace(-32.5, -53, 16),
        np.linspace(-54.5, -62, 6),
        np.linspace(-63.0, -65.8, 4),
        [-66.5, -67.5],
        np.linspace(-68.2, -76, 8),
        np.linspace(-78, -112, 14),
        np.linspace(-115, -150, 9),
        np.linspace(-160, -250, 7),
    ]
)


def _columns() -> NDArray[np.float64]:
    """Angles round the axis from -pi to pi, 0 in front, dense where the face is."""
    front = np.arcsin(np.linspace(0, 57, 37) / 70)
    side = np.linspace(front[-1], np.pi, 17)[1:]
    half = np.concatenate([front, side])
    return np.concatenate([-half[:0:-1], half])


@dataclass(frozen=True, slots=True)
class Template:
    """angle, u, v: (rows, columns) each. triangles: (T, 3) indices into the flattened grid, seen from outside."""

    angle: Floats
    u: Floats
    v: Floats
    triangles: NDArray[np.int32]

    def at(self, u: Floats, v: Floats) -> tuple[Floats, Floats]:
        """Fractional (row, column) of places (u, v) on the front."""
        width = knots(v)[:, 2]
        return self.turned(np.arcsin(np.clip(u / width, -1, 1)).astype(np.float32), v)

    def turned(self, angle: Floats, v: Floats) -> tuple[Floats, Floats]:
        """Fractional (row, column) of places at `angle` radians round the axis and height v."""
        row = np.interp(-np.asarray(v), -ROWS, np.arange(len(ROWS)))
        return row.astype(np.float32), np.interp(angle, self.angle[0], np.arange(self.angle.shape[1])).astype(
            np.float32
        )


def knots(v: Floats) -> NDArray[np.float64]:
    """The knots' columns at heights v: (len(v), 6)."""
    order = KNOTS[::-1]
    return np.asarray(PchipInterpolator(order[:, 0], order[:, 1:])(np.asarray(v, np.float64)))


def grid_triangles(rows: int, columns: int) -> NDArray[np.int32]:
    """Two triangles for each cell of a grid whose rows run down and whose columns run to the right when in front."""
    first = (np.arange(rows - 1)[:, None] * columns + np.arange(columns - 1)).ravel()
    upper = np.stack([first, first + columns, first + 1], axis=1)
    lower = np.stack([first + 1, first + columns, first + columns + 1], axis=1)
    return np.concatenate([upper, lower]).astype(np.int32)


@lru_cache(maxsize=1)
def template() -> Template:
    """The one template. Cached and shared: read only."""
    columns = _columns()
    angle, v = np.meshgrid(columns, ROWS)
    width = knots(ROWS)[:, 2][:, None]
    u = width * np.sin(angle)
    triangles = grid_triangles(len(ROWS), len(columns))
    result = Template(angle.astype(np.float32), u.astype(np.float32), v.astype(np.float32), triangles)
    for part in (result.angle, result.u, result.v, result.triangles):
        part.setflags(write=False)
    return result


def sample(grid: Floats, row: Floats, column: Floats) -> Floats:
    """Values of `grid` (rows, columns, C) at fractional places (N,), bilinear: (N, C)."""
    r = np.clip(np.floor(row).astype(int), 0, grid.shape[0] - 2)
    c = np.clip(np.floor(column).astype(int), 0, grid.shape[1] - 2)
    a, b = (row - r)[:, None], (column - c)[:, None]
    upper = grid[r, c] * (1 - b) + grid[r, c + 1] * b
    lower = grid[r + 1, c] * (1 - b) + grid[r + 1, c + 1] * b
    return np.asarray(upper * (1 - a) + lower * a, np.float32)
