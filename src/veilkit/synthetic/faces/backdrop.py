"""What is behind a face: a wall, a studio's gradient, lights out of focus, or a place out of focus."""

from __future__ import annotations

import cv2
import numpy as np

from veilkit.synthetic.colours import CLOTH, draw
from veilkit.synthetic.filters import blur, resize
from veilkit.synthetic.scenes import HEIGHT, WIDTH, clouds, scene
from veilkit.synthetic.view import Floats

_PLACES = 12


def backdrop(rng: np.random.Generator, seed: int, height: int, width: int) -> Floats:
    """A background in linear light (height, width, 3)."""
    kind = rng.random()
    if kind < 0.4:
        return _place(rng, seed, height, width)
    first, second = (np.array(draw(rng, CLOTH, 0.08), np.float32) for _ in range(2))
    mild = np.float32(rng.uniform(0.15, 0.6))
    second = first + mild * (second - first)
    slope = np.linspace(0, 1, height, dtype=np.float32)[:, None] * np.float32(rng.uniform(-1, 1))
    slope = slope + np.linspace(0, 1, width, dtype=np.float32) * np.float32(rng.uniform(-1, 1))
    slope = np.clip(0.5 + 0.8 * (slope - slope.mean()), 0, 1)[..., None]
    picture = first + slope * (second - first)
    unit = height / 128
    if kind < 0.6:
        picture = picture * (1 + 0.07 * clouds(rng, height, width, max(2, int(3 * unit))))[..., None]
        picture = blur(picture.astype(np.float32), 0.6 * unit)
    elif kind < 0.75:
        picture = np.ascontiguousarray(picture, np.float32)
        for _ in range(int(rng.integers(6, 18))):
            at = int(rng.integers(0, width)), int(rng.integers(0, height))
            glow = tuple(float(each) for each in np.array(draw(rng, CLOTH, 0.1)) * 0.7 + 0.25)
            cv2.circle(picture, at, int(rng.uniform(3, 12) * unit), glow, -1, cv2.LINE_AA)
        picture = blur(picture, 2.2 * unit)
    return np.asarray(np.square(np.clip(picture, 0.02, 0.98)), np.float32)


def _place(rng: np.random.Generator, seed: int, height: int, width: int) -> Floats:
    wide = scene(seed, int(rng.integers(_PLACES)))
    rows = int(HEIGHT * rng.uniform(0.45, 1.0))
    columns = min(WIDTH, max(8, round(rows * width / height)))
    top, left = int(rng.integers(0, HEIGHT - rows + 1)), int(rng.integers(0, WIDTH - columns + 1))
    part = resize(np.ascontiguousarray(wide[top : top + rows, left : left + columns]), height, width)
    return blur(part, float(rng.uniform(0.8, 3.0)) * height / 128)
