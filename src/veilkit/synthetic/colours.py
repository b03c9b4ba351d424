"""Colours of skin, hair and cloth. sRGB in [0, 1]; cloth is crowded with dark and neutral tones, as streets are."""

from __future__ import annotations

from typing import TypeAlias

import numpy as np

from veilkit.synthetic.arrays import Floats

Colour: TypeAlias = tuple[float, float, float]

CLOTH: tuple[tuple[Colour, float], ...] = (
    ((0.07, 0.07, 0.08), 15),  # black
    ((0.17, 0.17, 0.19), 9),  # charcoal
    ((0.40, 0.41, 0.43), 8),  # grey
    ((0.66, 0.67, 0.68), 6),  # light grey
    ((0.90, 0.90, 0.88), 9),  # white
    ((0.10, 0.13, 0.25), 11),  # navy
    ((0.20, 0.30, 0.48), 6),  # mid blue
    ((0.48, 0.62, 0.78), 5),  # light blue
    ((0.72, 0.63, 0.50), 4),  # beige
    ((0.47, 0.42, 0.29), 4),  # khaki
    ((0.30, 0.20, 0.14), 4),  # brown
    ((0.26, 0.29, 0.18), 3),  # olive
    ((0.12, 0.33, 0.22), 3),  # green
    ((0.36, 0.08, 0.13), 4),  # burgundy
    ((0.72, 0.12, 0.13), 5),  # red
    ((0.85, 0.45, 0.13), 2),  # orange
    ((0.90, 0.76, 0.28), 2),  # yellow
    ((0.86, 0.56, 0.64), 3),  # pink
    ((0.36, 0.22, 0.44), 2),  # purple
    ((0.12, 0.45, 0.48), 2),  # teal
)
TROUSERS: tuple[tuple[Colour, float], ...] = (
    ((0.08, 0.08, 0.09), 9),
    ((0.18, 0.19, 0.21), 5),
    ((0.13, 0.17, 0.28), 7),  # dark denim
    ((0.25, 0.34, 0.48), 6),  # denim
    ((0.45, 0.55, 0.67), 4),  # washed denim
    ((0.40, 0.40, 0.41), 4),
    ((0.68, 0.60, 0.47), 4),
    ((0.42, 0.38, 0.27), 3),
    ((0.87, 0.86, 0.83), 2),
    ((0.30, 0.22, 0.17), 2),
    ((0.40, 0.11, 0.15), 1),
)
SKIN: tuple[Colour, ...] = (
    (0.94, 0.79, 0.70),
    (0.90, 0.72, 0.60),
    (0.85, 0.66, 0.53),
    (0.76, 0.57, 0.43),
    (0.66, 0.46, 0.34),
    (0.52, 0.35, 0.25),
    (0.40, 0.26, 0.19),
    (0.30, 0.20, 0.15),
)
HAIR: tuple[tuple[Colour, float], ...] = (
    ((0.06, 0.05, 0.05), 10),
    ((0.15, 0.10, 0.07), 8),
    ((0.29, 0.19, 0.12), 6),
    ((0.45, 0.31, 0.18), 3),
    ((0.73, 0.58, 0.36), 3),
    ((0.48, 0.20, 0.10), 1),
    ((0.60, 0.59, 0.58), 2),
)


def linear(colour: Colour) -> Floats:
    """Linear light (3,) of an sRGB colour, with the exponent 2 in place of sRGB's curve."""
    return np.square(np.array(colour, np.float32))


def draw(rng: np.random.Generator, palette: tuple[tuple[Colour, float], ...], jitter: float = 0.03) -> Colour:
    """A colour of `palette` by weight, moved a little: no two dyes are the same."""
    weights = np.array([weight for _, weight in palette])
    colour = palette[int(rng.choice(len(palette), p=weights / weights.sum()))][0]
    return shift(rng, colour, jitter)


def shift(rng: np.random.Generator, colour: Colour, jitter: float) -> Colour:
    """`colour` with its lightness and each channel moved by about `jitter`."""
    moved = np.clip(np.array(colour) + rng.normal(0, jitter) + rng.normal(0, jitter / 2, 3), 0.03, 0.96)
    return float(moved[0]), float(moved[1]), float(moved[2])


def contrast(rng: np.random.Generator, colour: Colour) -> Colour:
    """A cloth colour that can be told from `colour` in grey as well as in colour."""
    for _ in range(8):
        other = draw(rng, CLOTH)
        if abs(sum(other) - sum(colour)) > 0.75:
            return other
    return (0.90, 0.90, 0.88) if sum(colour) < 1.5 else (0.08, 0.08, 0.09)
