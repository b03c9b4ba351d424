"""Where a camera hangs: a wide still background, of which each shot shows another part."""

from __future__ import annotations

from functools import lru_cache

import cv2
import numpy as np

from veilkit.rng import Randomness
from veilkit.synthetic.arrays import Floats, blur, clouds
from veilkit.synthetic.cameras import draw_camera
from veilkit.synthetic.colours import Colour, shift

HEIGHT, WIDTH = 256, 768


@lru_cache(maxsize=64)
def scene(seed: int, camera: int) -> Floats:
    """The background of a camera, linear (256, 768, 3). Cached and shared: read only."""
    place = draw_camera(seed, camera).place
    rng = Randomness.from_seed(seed).child("people", "scene", camera).numpy()
    horizon = int(HEIGHT * rng.uniform(0.2, 0.46))
    picture = np.zeros((HEIGHT, WIDTH, 3), np.float32)
    _ground(rng, picture, horizon, place)
    {
        "street": _shop_fronts,
        "corridor": _panels,
        "park": _trees,
        "plaza": _facade,
        "station": _panels,
        "campus": _hedge,
    }[place](rng, picture, horizon)
    picture[horizon : horizon + 2] *= 0.7
    light = 1 + 0.16 * clouds(rng, HEIGHT, WIDTH, 72)
    texture = 1 + 0.04 * clouds(rng, HEIGHT, WIDTH, 3) + 0.04 * clouds(rng, HEIGHT, WIDTH, 14)
    picture = np.clip(picture * (light * texture)[..., None], 0.01, 1)
    result = np.square(blur(picture, float(rng.uniform(0.8, 1.8))))
    result.setflags(write=False)
    return result


def _fill(picture: Floats, box: tuple[float, float, float, float], colour: Colour | Floats) -> None:
    """Paint left, top, right, bottom."""
    left, top, right, bottom = (round(v) for v in box)
    picture[max(0, top) : max(0, bottom), max(0, left) : max(0, right)] = np.asarray(colour, np.float32)


_GROUNDS: dict[str, tuple[Colour, ...]] = {
    "street": ((0.55, 0.54, 0.52), (0.48, 0.46, 0.45)),
    "corridor": ((0.70, 0.68, 0.63), (0.58, 0.60, 0.62)),
    "park": ((0.36, 0.44, 0.23), (0.43, 0.46, 0.28)),
    "plaza": ((0.66, 0.63, 0.58), (0.58, 0.54, 0.50)),
    "station": ((0.52, 0.53, 0.55), (0.62, 0.58, 0.52)),
    "campus": ((0.36, 0.37, 0.39), (0.58, 0.48, 0.43)),
}


def _ground(rng: np.random.Generator, picture: Floats, horizon: int, place: str) -> None:
    choices = _GROUNDS[place]
    base = np.array(shift(rng, choices[int(rng.integers(len(choices)))], 0.03), np.float32)
    depth = np.linspace(0.85, 1.08, HEIGHT - horizon, dtype=np.float32)
    picture[horizon:] = base * depth[:, None, None]
    if place == "park":
        blades = clouds(rng, HEIGHT, WIDTH, 2)[horizon:]
        picture[horizon:] *= (1 + 0.10 * blades)[..., None]
        if rng.random() < 0.7:
            top, bottom = horizon + int(rng.uniform(20, 60)), HEIGHT - int(rng.uniform(0, 40))
            picture[top:bottom] = np.array(shift(rng, (0.60, 0.55, 0.47), 0.03), np.float32)
        return
    # Rows of slabs stand closer together towards the horizon; joints run to a vanishing point above it.
    joint = base * np.float32(rng.uniform(0.72, 0.9) if rng.random() < 0.8 else 1.1)
    slab, vanish = float(rng.uniform(18, 46)), (float(rng.uniform(0, WIDTH)), float(horizon - rng.uniform(60, 300)))
    tone = tuple(float(v) for v in joint)
    for step in range(1, 16):
        y = horizon + (HEIGHT - horizon) * (step * slab / 300) ** 1.5
        if y < HEIGHT:
            cv2.line(picture, (0, round(y)), (WIDTH, round(y)), tone, 1, cv2.LINE_AA)
    for x in np.arange(-3 * WIDTH, 4 * WIDTH, slab * 2.2):
        share = (horizon - vanish[1]) / (HEIGHT - vanish[1])
        far = (round(vanish[0] + (x - vanish[0]) * share), horizon)
        if -WIDTH < far[0] < 2 * WIDTH:
            cv2.line(picture, far, (round(x), HEIGHT), tone, 1, cv2.LINE_AA)
    if place in ("campus", "street") and rng.random() < 0.6:
        y = horizon + int(rng.uniform(10, 50))
        _fill(picture, (0, y, WIDTH, y + rng.uniform(3, 6)), (0.80, 0.79, 0.74))


def _shop_fronts(rng: np.random.Generator, picture: Floats, horizon: int) -> None:
    x = 0.0
    while x < WIDTH:
        wide = float(rng.uniform(50, 130))
        wall = shift(rng, ((0.45, 0.40, 0.36), (0.30, 0.30, 0.32), (0.62, 0.56, 0.48))[int(rng.integers(3))], 0.05)
        _fill(picture, (x, 0, x + wide, horizon), wall)
        _fill(picture, (x + 6, horizon * 0.3, x + wide - 6, horizon - 6), shift(rng, (0.22, 0.25, 0.29), 0.05))
        for _ in range(int(rng.integers(4, 12))):
            left, top = x + 8 + rng.uniform(0, wide - 26), horizon * rng.uniform(0.35, 0.8)
            glow = tuple(float(v) for v in rng.uniform(0.15, 0.9, 3))
            _fill(
                picture, (left, top, left + rng.uniform(4, 14), top + rng.uniform(4, 20)), (glow[0], glow[1], glow[2])
            )
        sign = tuple(float(v) for v in rng.uniform(0.1, 0.85, 3))
        _fill(picture, (x + 2, horizon * 0.12, x + wide - 2, horizon * 0.27), (sign[0], sign[1], sign[2]))
        x += wide


def _panels(rng: np.random.Generator, picture: Floats, horizon: int) -> None:
    wall = np.array(
        shift(rng, ((0.74, 0.73, 0.69), (0.62, 0.66, 0.68), (0.70, 0.64, 0.54))[int(rng.integers(3))], 0.04)
    )
    _fill(picture, (0, 0, WIDTH, horizon), wall.astype(np.float32))
    _fill(picture, (0, horizon - 8, WIDTH, horizon), (wall * 0.6).astype(np.float32))
    pitch = float(rng.uniform(40, 90))
    for x in np.arange(0, WIDTH, pitch):
        cv2.line(picture, (round(x), 0), (round(x), horizon), tuple(float(v) for v in wall * 0.8), 1, cv2.LINE_AA)
        kind = rng.random()
        if kind < 0.3:
            door = shift(
                rng, ((0.40, 0.28, 0.20), (0.33, 0.38, 0.43), (0.55, 0.16, 0.15))[int(rng.integers(3))], 0.04
            )
            _fill(picture, (x + 4, 0, x + pitch - 4, horizon - 1), door)
        elif kind < 0.55:
            poster = rng.uniform(0.2, 0.9, 3)
            _fill(picture, (x + 10, horizon * 0.1, x + pitch - 10, horizon * 0.7), poster.astype(np.float32))
            _fill(picture, (x + 14, horizon * 0.2, x + pitch - 18, horizon * 0.4), (1 - poster).astype(np.float32))
        elif kind < 0.65:
            _fill(picture, (x, 0, x + 14, horizon + 14), (wall * 0.72).astype(np.float32))


def _trees(rng: np.random.Generator, picture: Floats, horizon: int) -> None:
    far = np.array(shift(rng, (0.38, 0.45, 0.33), 0.05), np.float32)
    foliage = 1 + 0.25 * clouds(rng, horizon, WIDTH, 10) + 0.15 * clouds(rng, horizon, WIDTH, 4)
    picture[:horizon] = far * np.clip(foliage, 0.3, 1.9)[..., None]
    sky = clouds(rng, horizon, WIDTH, 24) + np.linspace(1.2, -2.0, horizon, dtype=np.float32)[:, None] > 0.9
    picture[:horizon][sky] = (0.80, 0.84, 0.88)
    for x in np.cumsum(rng.uniform(40, 160, 10)):
        wide = rng.uniform(5, 13)
        _fill(picture, (x, 0, x + wide, horizon + rng.uniform(2, 30)), shift(rng, (0.25, 0.20, 0.16), 0.03))


def _facade(rng: np.random.Generator, picture: Floats, horizon: int) -> None:
    wall = shift(rng, ((0.58, 0.36, 0.29), (0.66, 0.62, 0.55), (0.50, 0.51, 0.53))[int(rng.integers(3))], 0.04)
    _fill(picture, (0, 0, WIDTH, horizon), wall)
    for y in range(0, horizon, 5):
        picture[y, :] *= 0.88
    step, high = float(rng.uniform(34, 70)), horizon * rng.uniform(0.4, 0.7)
    for x in np.arange(rng.uniform(0, 20), WIDTH, step):
        glass = shift(rng, (0.30, 0.36, 0.42), 0.06)
        _fill(picture, (x, horizon * 0.1, x + step * 0.55, horizon * 0.1 + high), (0.82, 0.80, 0.76))
        _fill(picture, (x + 2, horizon * 0.1 + 2, x + step * 0.55 - 2, horizon * 0.1 + high - 2), glass)


def _hedge(rng: np.random.Generator, picture: Floats, horizon: int) -> None:
    _facade(rng, picture, horizon)
    top = int(horizon * rng.uniform(0.35, 0.7))
    foliage = 1 + 0.3 * clouds(rng, horizon - top, WIDTH, 5)
    picture[top:horizon] = (
        np.array(shift(rng, (0.22, 0.31, 0.16), 0.03), np.float32) * np.clip(foliage, 0.3, 1.8)[..., None]
    )
    for x in np.cumsum(rng.uniform(60, 220, 6)):
        body = (
            rng.uniform(0.08, 0.8, 3).astype(np.float32) if rng.random() < 0.5 else np.full(3, rng.uniform(0.1, 0.8))
        )
        tall, wide = rng.uniform(22, 36), rng.uniform(80, 120)
        _fill(picture, (x, horizon - tall * 0.6, x + wide, horizon + tall * 0.3), body.astype(np.float32))
        _fill(picture, (x + wide * 0.2, horizon - tall, x + wide * 0.8, horizon - tall * 0.6), (0.16, 0.18, 0.20))
        for wheel in (0.2, 0.8):
            cv2.circle(picture, (round(x + wide * wheel), round(horizon + tall * 0.3)), 8, (0.07, 0.07, 0.07), -1)
