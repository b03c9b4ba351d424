"""One picture of one generated person: body, light, background, things in the way, camera."""

from __future__ import annotations

import math
from functools import lru_cache

import cv2
import numpy as np
from numpy.typing import NDArray

from veilkit.errors import ConfigError
from veilkit.rng import Randomness
from veilkit.synthetic.arrays import Floats, blur, clouds, resize, warp
from veilkit.synthetic.cameras import Camera, Light, develop, draw_camera
from veilkit.synthetic.colours import linear, shift
from veilkit.synthetic.people.bags import draw_bag
from veilkit.synthetic.people.body import draw_pose, skeleton
from veilkit.synthetic.people.canvas import Canvas, View, shade
from veilkit.synthetic.people.garments import Figure, draw_clothes
from veilkit.synthetic.people.head import Head, draw_hair, draw_head
from veilkit.synthetic.people.identity import Person, draw_person
from veilkit.synthetic.scenes import HEIGHT, WIDTH, scene

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


_SUPERSAMPLING = 2
_PASSERS_BY = 5


@lru_cache(maxsize=4096)
def person(seed: int, identity: int) -> Person:
    """Identity number `identity` of the world `seed`."""
    return draw_person(Randomness.from_seed(seed).child("people", "identity", identity).numpy())


def render_person(
    seed: int, identity: int, camera: int, shot: int, *, height: int = 256, width: int = 128
) -> NDArray[np.uint8]:
    """A pedestrian crop, RGB (height, width, 3): a pure function of its arguments.

    seed names a world of people and cameras. identity fixes body, hair, clothes, bag and shoes; camera the place,
    its light and the look of its pictures; shot the pose, the view angle, the crop and what is in the way.
    The camera's JPEG compression is left to the writer: see `camera_jpeg_quality`.
    """
    if height < 32 or width < 16:
        raise ConfigError(f"a picture needs at least 32 x 16 pixels, but got {height} x {width}")
    lens = draw_camera(seed, camera)
    rng = Randomness.from_seed(seed).child("people", "shot", identity, camera, shot).numpy()
    light = _moment(rng, lens.light)
    picture = _background(rng, seed, camera, height, width)
    view = _framing(rng, lens, height, width)
    colour, cover = _draw(rng, person(seed, identity), view, light, height, width)
    picture *= (1 - _shadow(cover, view, light))[..., None]
    picture = colour + picture * (1 - cover)[..., None]
    if rng.random() < 0.2:
        picture = _obstruct(rng, picture, seed, camera, height, width)
    return develop(lens, picture, rng)


def _moment(rng: np.random.Generator, light: Light) -> Light:
    """The light at one moment: clouds pass, the person stands nearer to or farther from a lamp."""
    return Light(
        light.azimuth + float(rng.normal(0, 0.35)),
        light.height,
        light.sun * float(np.exp(rng.normal(0, 0.12))),
        light.sky * float(np.exp(rng.normal(0, 0.08))),
        light.warmth,
    )


def _framing(rng: np.random.Generator, lens: Camera, height: int, width: int) -> View:
    """Where an imperfect detector puts the person in its box, and how the person stands to the camera."""
    scale, bottom = float(rng.uniform(0.88, 0.97)), float(rng.uniform(0.955, 0.99))
    trouble = rng.random()
    if trouble < 0.06:
        scale, bottom = float(rng.uniform(1.0, 1.25)), float(rng.uniform(1.05, 1.25))
    elif trouble < 0.10:
        scale, bottom = float(rng.uniform(0.95, 1.1)), float(rng.uniform(0.93, 1.0))
    elif trouble < 0.16:
        scale, bottom = float(rng.uniform(0.7, 0.82)), float(rng.uniform(0.86, 0.95))
    wild = 0.09 if trouble < 0.2 else 0.035
    pitch = lens.pitch + float(rng.normal(0, 0.03))
    size = _SUPERSAMPLING * height
    return View(
        yaw=float(rng.uniform(0, 2 * math.pi)),
        pitch=pitch,
        scale=size * scale / math.cos(pitch),
        x=_SUPERSAMPLING * width * (0.5 + float(rng.normal(0, wild))),
        ground=size * bottom,
        aspect=float(rng.uniform(1.08, 1.25)) * 2 * width / height,
        roll=float(rng.normal(0, 0.02)),
    )


def _draw(
    rng: np.random.Generator, who: Person, view: View, light: Light, height: int, width: int
) -> tuple[Floats, Floats]:
    """The lit person: linear colour multiplied by coverage (H, W, 3), and coverage (H, W)."""
    pose = draw_pose(rng, phone=bool(rng.random() < 0.12))
    canvas = Canvas(height * _SUPERSAMPLING, width * _SUPERSAMPLING, view)
    crease = float(rng.random()), float(rng.random())
    figure = Figure(who, skeleton(who.build, pose), canvas, crease)
    draw_clothes(figure)
    head = Head(figure, pose.look)
    draw_head(head)
    draw_hair(head)
    draw_bag(figure)
    return shade(canvas, light, _SUPERSAMPLING)


def _background(rng: np.random.Generator, seed: int, camera: int, height: int, width: int) -> Floats:
    """A part of the camera's scene, at times with somebody far away."""
    wide = scene(seed, camera)
    zoom = float(rng.uniform(0.75, 1.0))
    rows, columns = round(HEIGHT * zoom), round(HEIGHT * zoom * width / height)
    top = int(rng.integers(0, HEIGHT - rows + 1))
    left = int(rng.integers(0, max(1, WIDTH - columns)))
    part = wide[top : top + rows, left : left + columns]
    if rng.random() < 0.5:
        part = part[:, ::-1]
    picture = resize(part, height, width)
    if rng.random() < 0.3:
        colour, cover = passer_by(seed, camera, int(rng.integers(_PASSERS_BY)))
        tall = int(height * rng.uniform(0.25, 0.5))
        slim, soft = max(4, tall // 2), 0.8 * height / 256
        colour, cover = blur(resize(colour, tall, slim), soft), blur(resize(cover, tall, slim), soft)
        place = int(rng.integers(-slim // 2, width - slim // 2)), int(rng.uniform(0.05, 0.35) * height)
        _paste(picture, colour, cover, place)
    return picture


def _paste(picture: Floats, colour: Floats, cover: Floats, at: tuple[int, int]) -> None:
    """Lay a cut-out over `picture` with its left top corner at x, y; what hangs over the edge is lost."""
    x, y = at
    rows = slice(max(0, y), min(picture.shape[0], y + cover.shape[0]))
    columns = slice(max(0, x), min(picture.shape[1], x + cover.shape[1]))
    if rows.start >= rows.stop or columns.start >= columns.stop:
        return
    part = slice(rows.start - y, rows.stop - y), slice(columns.start - x, columns.stop - x)
    picture[rows, columns] = colour[part] + picture[rows, columns] * (1 - cover[part])[..., None]


@lru_cache(maxsize=128)
def passer_by(seed: int, camera: int, number: int) -> tuple[Floats, Floats]:
    """A cut-out (256, 128) of somebody who belongs to no identity. Cached and shared: read only."""
    rng = Randomness.from_seed(seed).child("people", "passer-by", camera, number).numpy()
    lens = draw_camera(seed, camera)
    size = 256 * _SUPERSAMPLING
    view = View(float(rng.uniform(0, 2 * math.pi)), lens.pitch, size * 0.9, size / 4, size * 0.97)
    return _draw(rng, draw_person(rng), view, lens.light, 256, 128)


def _obstruct(rng: np.random.Generator, picture: Floats, seed: int, camera: int, height: int, width: int) -> Floats:
    """`picture` with something or somebody in front of a part of it."""
    if rng.random() < 0.45:
        colour, cover = passer_by(seed, camera, int(rng.integers(_PASSERS_BY)))
        tall = height * float(rng.uniform(0.9, 1.15))
        size = round(tall), round(tall * width / height)
        colour, cover = resize(colour, *size), resize(cover, *size)
        aside = width * float(rng.uniform(0.42, 0.62)) * (1 if rng.random() < 0.5 else -1)
        picture = picture.copy()
        _paste(
            picture, colour, cover, (round(aside + (width - size[1]) / 2), round(height * rng.uniform(-0.02, 0.12)))
        )
        return picture
    colour, cover = occluder(rng, KINDS[int(rng.integers(len(KINDS)))], height, width)
    return colour + picture * (1 - cover)[..., None]


def _shadow(cover: Floats, view: View, light: Light) -> Floats:
    """How much light (H, W) the person takes from the ground behind: the silhouette laid down away from the light."""
    height = cover.shape[0]
    foot_x, foot_y = view.x / _SUPERSAMPLING, view.ground / _SUPERSAMPLING
    length = min(1.6, 1 / math.tan(light.height))
    lean = -math.sin(light.azimuth) * length
    flat = max(-0.5, min(0.5, math.cos(light.azimuth) * length * max(0.15, math.sin(view.pitch)) + 0.04))
    # A point h above the foot falls on x + lean h, and flat h higher in the picture.
    matrix = np.array([[1, -lean, lean * foot_y], [0, flat, foot_y * (1 - flat)]], np.float32)
    laid = warp(cover, matrix)
    unit = height / 256
    laid = blur(laid, 2.2 * unit) * np.float32(0.55 * light.sun / (light.sun + light.sky))
    contact = np.zeros_like(cover)
    reach = round(20 * unit), max(1, round((3 + 20 * math.sin(view.pitch)) * unit))
    cv2.ellipse(contact, (round(foot_x), round(foot_y - 2 * unit)), reach, 0, 0, 360, 0.5, -1)
    return np.maximum(laid, blur(contact, 4 * unit))
