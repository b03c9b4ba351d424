"""What stands in the way: poles, benches, bushes, bins. Passers-by are drawn by `render`."""

from __future__ import annotations

import cv2
import numpy as np

from veilkit.synthetic.colours import linear, shift
from veilkit.synthetic.filters import blur
from veilkit.synthetic.scenes import clouds
from veilkit.synthetic.view import Floats

KINDS = ("pole", "bench", "bush", "bin")


def occluder(rng: np.random.Generator, kind: str, height: int, width: int) -> tuple[Floats, Floats]:
    """Linear colour (H, W, 3), multiplied by its coverage, and coverage (H, W) of one thing before the person."""
    cover = np.zeros((height, width), np.float32)
    unit = height / 256
    relief = np.ones((height, width), np.float32)
    if kind == "pole":
        x, half = float(rng.uniform(0.15, 0.85)) * width, float(rng.uniform(3, 8)) * unit
        columns = (np.arange(width, dtype=np.float32)[None, :] - x) / half
        cover[:] = np.clip((1 - np.abs(columns)) * half + 0.5, 0, 1)
        relief = relief * (0.55 + 0.6 * np.clip(1 - np.abs(columns + 0.35), 0, 1))
        colour = shift(rng, (0.42, 0.43, 0.44) if rng.random() < 0.6 else (0.20, 0.26, 0.22), 0.05)
    elif kind == "bench":
        top, colour = float(rng.uniform(0.68, 0.82)) * height, shift(rng, (0.42, 0.29, 0.18), 0.05)
        for slat in range(4):
            y = round(top + slat * 11 * unit)
            cv2.rectangle(cover, (0, y), (width, round(y + 7 * unit)), 1.0, -1)
        for x in (0.12, 0.86):
            cv2.rectangle(cover, (round(x * width), round(top)), (round((x + 0.04) * width), height), 1.0, -1)
    elif kind == "bush":
        top = float(rng.uniform(0.72, 0.86)) * height
        edge = top + 10 * unit * clouds(rng, height, width, max(4, round(16 * unit)))[0][None, :]
        cover[:] = np.clip((np.arange(height, dtype=np.float32)[:, None] - edge) / (3 * unit), 0, 1)
        relief = 1 + 0.35 * clouds(rng, height, width, max(2, round(4 * unit)))
        colour = shift(rng, (0.27, 0.36, 0.19), 0.04)
    else:
        top, half = float(rng.uniform(0.66, 0.82)) * height, float(rng.uniform(14, 24)) * unit
        x = float(rng.uniform(0.1, 0.9)) * width
        columns = (np.arange(width, dtype=np.float32)[None, :] - x) / half
        rows = np.arange(height, dtype=np.float32)[:, None] - top + 4 * unit * np.sqrt(np.clip(1 - columns**2, 0, 1))
        cover[:] = (np.abs(columns) < 1) & (rows > 0)
        lid = np.where(rows < 9 * unit, np.float32(0.55), np.float32(1.0)) * (1 - 0.25 * (rows % (16 * unit) < unit))
        relief = lid * (0.35 + 0.85 * np.sqrt(np.clip(1 - (0.8 * columns + 0.3) ** 2, 0, 1)))
        colour = shift(rng, ((0.33, 0.36, 0.38), (0.16, 0.27, 0.22), (0.48, 0.21, 0.17))[int(rng.integers(3))], 0.04)
    cover = blur(cover, 0.7 * unit)
    return np.asarray(linear(colour) * (0.7 * np.clip(relief, 0.2, 1.8) * cover)[..., None], np.float32), cover
