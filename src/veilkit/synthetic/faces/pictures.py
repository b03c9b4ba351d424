"""Pictures of faces: portraits and group photographs, with background, camera and the truth about them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

import cv2
import numpy as np
from numpy.typing import NDArray

from veilkit.errors import ConfigError
from veilkit.rng import Randomness
from veilkit.synthetic.arrays import Floats, blur, clouds, resize
from veilkit.synthetic.cameras import develop
from veilkit.synthetic.colours import CLOTH
from veilkit.synthetic.colours import draw as draw_colour
from veilkit.synthetic.faces.capture import Capture, Ranges, draw_capture
from veilkit.synthetic.faces.identity import Face, draw_face
from veilkit.synthetic.faces.lens import Lens
from veilkit.synthetic.faces.render import Drawn, draw
from veilkit.synthetic.faces.truth import FaceTruth, face_truth
from veilkit.synthetic.scenes import HEIGHT, WIDTH, scene

_PLACES = 12


def backdrop(rng: np.random.Generator, seed: int, height: int, width: int) -> Floats:
    """A background in linear light (height, width, 3)."""
    kind = rng.random()
    if kind < 0.4:
        return _place(rng, seed, height, width)
    first, second = (np.array(draw_colour(rng, CLOTH, 0.08), np.float32) for _ in range(2))
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
            glow = tuple(float(each) for each in np.array(draw_colour(rng, CLOTH, 0.1)) * 0.7 + 0.25)
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


SUPERSAMPLING = 2
SMALLEST = 64
_GREY = 0.2  # linear light of a well exposed person
HEAD = 232.0  # millimetres from chin to crown
_FACE = np.array([0.0, -10.0, -15.0], np.float32)


@lru_cache(maxsize=4096)
def face(seed: int, identity: int) -> Face:
    """Identity number `identity` of the world `seed`."""
    return draw_face(Randomness.from_seed(seed).child("faces", "identity", identity).numpy())


def capture(seed: int, identity: int, shot: int, ranges: Ranges = Ranges()) -> Capture:  # noqa: B008 - frozen
    """Shot number `shot` of an identity: it does not depend on who that is."""
    return draw_capture(Randomness.from_seed(seed).child("faces", "shot", identity, shot).numpy(), ranges)


def render_face(
    seed: int,
    identity: int,
    shot: int,
    *,
    size: int = 128,
    ranges: Ranges = Ranges(),  # noqa: B008 - frozen
) -> tuple[NDArray[np.uint8], FaceTruth]:
    """A portrait, RGB (size, size, 3), and its truth: a pure function of the arguments."""
    rng = Randomness.from_seed(seed).child("faces", "picture", identity, shot).numpy()
    return take(face(seed, identity), capture(seed, identity, shot, ranges), rng, seed=seed, size=size)


def framed(lens: Lens) -> Lens:
    """`lens` with the head moved so that the face, however it is turned, is near the optical axis."""
    x, y, _ = (float(each) for each in lens.turn(_FACE[None])[0])
    return replace(lens, offset=(-0.85 * x, -0.85 * y, 0.0))


def take(
    who: Face, moment: Capture, rng: np.random.Generator, *, seed: int = 0, size: int = 128
) -> tuple[NDArray[np.uint8], FaceTruth]:
    """The portrait of `who` at `moment`; rng draws background and noise."""
    check_size(size)
    fine = SUPERSAMPLING * size
    middle = fine * (0.5 + moment.shift[0]), fine * (0.5 + moment.shift[1])
    lens = framed(Lens(moment.pose, fine * moment.zoom / HEAD, moment.distance, middle))
    drawn = draw(who, moment.expression.actions, moment.gaze, lens, moment.light, (fine, fine))
    picture = resize(drawn.colour, size, size)
    picture += backdrop(rng, seed, size, size) * (1 - resize(drawn.cover, size, size))[..., None]
    truth = face_truth(who, moment, lens, drawn, SUPERSAMPLING)
    return develop(moment.camera, exposed(picture, drawn), rng), truth


def exposed(picture: Floats, drawn: Drawn) -> Floats:
    """`picture` as a camera exposes it that looks, among other things, at the face."""
    solid = drawn.cover > 0.5
    light = float(drawn.colour[solid].mean()) if solid.any() else _GREY
    return picture * np.float32((_GREY / max(light, 0.02)) ** 0.45)


def check_size(size: int) -> None:
    """Raise unless a face can be drawn at `size` pixels."""
    if size < SMALLEST:
        raise ConfigError(f"a face needs at least {SMALLEST} pixels a side, but got {size}")


_APART, _BEHIND, _HIGHER = 400.0, 480.0, 270.0  # millimetres between neighbours; of a row from the row before it
_MARGIN = (230.0, 260.0, 290.0)  # beside, above and below the faces
_DISTANCE = 2600.0
_ZOOM = 0.6  # a head in front takes this share of `size`


@dataclass(frozen=True, slots=True)
class Stage:
    """The picture that a group needs. seats: offsets (N, 3) in millimetres, back row first."""

    height: int
    width: int
    scale: float
    middle: tuple[float, float]
    seats: Floats


def stage(count: int, size: int, rng: np.random.Generator) -> Stage:
    """Seats for `count` people in one to three rows, in a picture whose faces have about the pixels of a portrait."""
    rows = 1 if count <= 4 else 2 if count <= 10 else 3
    seats = []
    left = count
    for row in reversed(range(rows)):
        here = math.ceil(left / (row + 1))
        left -= here
        for place in range(here):
            x = _APART * (place - (here - 1) / 2) + float(rng.normal(0, 18))
            y, z = _HIGHER * row + float(rng.normal(0, 22)), -_BEHIND * row + float(rng.normal(0, 40))
            seats.append((x, y, z))
    at = np.array(seats, np.float32)
    scale = size * _ZOOM / HEAD
    shown = at[:, :2] * (_DISTANCE / (_DISTANCE - at[:, 2:]))
    low, high = shown.min(axis=0), shown.max(axis=0)
    width = math.ceil((high[0] - low[0] + 2 * _MARGIN[0]) * scale)
    height = math.ceil((high[1] - low[1] + _MARGIN[1] + _MARGIN[2]) * scale)
    middle = (_MARGIN[0] - low[0]) * scale, (_MARGIN[1] + high[1]) * scale
    return Stage(height, width, scale, (float(middle[0]), float(middle[1])), at)


def render_group(
    seed: int,
    identities: Sequence[int],
    number: int,
    *,
    size: int = 128,
    ranges: Ranges = Ranges(),  # noqa: B008
) -> tuple[NDArray[np.uint8], list[FaceTruth]]:
    """A photograph of `identities`, RGB, and the truth of each, in their order: a pure function of the arguments.

    size: faces have about the pixels that a portrait of this size gives them. All share one light and one camera.
    """
    check_size(size)
    root = Randomness.from_seed(seed).child("faces", "group", number)
    rng = root.numpy()
    shared = draw_capture(rng, ranges)
    scenery = stage(len(identities), size, rng)
    picture = backdrop(rng, seed, scenery.height, scenery.width)
    layers: list[tuple[Drawn, FaceTruth, tuple[int, int]]] = []
    for identity, seat in zip(identities, scenery.seats, strict=True):
        moment = replace(draw_capture(root.child(identity).numpy(), ranges), light=shared.light)
        layers.append(_layer(seed, identity, moment, scenery, seat))
    truths = _hide([(each[1], each[0].cover, each[2]) for each in layers])
    for drawn, _, (left, top) in layers:
        _lay(picture, drawn, left, top)
    # The amount of blur is meant for a face that fills the picture.
    camera = replace(shared.camera, blur=0.4 * shared.camera.blur, resolution=1.0)
    return develop(camera, exposed(picture, layers[-1][0]), rng), truths


def _layer(
    seed: int, identity: int, moment: Capture, scenery: Stage, seat: Floats
) -> tuple[Drawn, FaceTruth, tuple[int, int]]:
    """One person on a canvas of its own; its left top corner in the picture."""
    shrink = _DISTANCE / (_DISTANCE - float(seat[2]))
    x = scenery.middle[0] + scenery.scale * shrink * float(seat[0])
    y = scenery.middle[1] - scenery.scale * shrink * float(seat[1])
    reach = scenery.scale * shrink
    left, right = math.floor(x - 235 * reach), math.ceil(x + 235 * reach)
    top = math.floor(y - 190 * reach)
    left, top, right = max(0, left), max(0, top), min(scenery.width, right)
    fine = SUPERSAMPLING
    lens = Lens(
        moment.pose,
        fine * scenery.scale,
        _DISTANCE,
        (fine * (scenery.middle[0] - left), fine * (scenery.middle[1] - top)),
        (float(seat[0]), float(seat[1]), float(seat[2])),
    )
    who = face(seed, identity)
    size = fine * (scenery.height - top), fine * (right - left)
    drawn = draw(who, moment.expression.actions, moment.gaze, lens, moment.light, size)
    truth = face_truth(who, moment, lens, drawn, fine)
    drawn = replace(drawn, colour=resize(drawn.colour, size[0] // fine, size[1] // fine),
                    cover=resize(drawn.cover, size[0] // fine, size[1] // fine))  # fmt: skip
    return drawn, truth.moved(left, top), (left, top)


def _lay(picture: Floats, drawn: Drawn, left: int, top: int) -> None:
    height, width = drawn.cover.shape
    part = picture[top : top + height, left : left + width]
    part *= (1 - drawn.cover)[..., None]
    part += drawn.colour


def _hide(layers: list[tuple[FaceTruth, Floats, tuple[int, int]]]) -> list[FaceTruth]:
    """The truths with the points marked that somebody in front covers."""
    result = []
    for index, (truth, _, _) in enumerate(layers):
        seen = truth.visible.copy()
        for _, cover, (left, top) in layers[index + 1 :]:
            x = np.floor(truth.landmarks[:, 0]).astype(int) - left
            y = np.floor(truth.landmarks[:, 1]).astype(int) - top
            inside = (x >= 0) & (y >= 0) & (x < cover.shape[1]) & (y < cover.shape[0])
            there = cover[np.clip(y, 0, cover.shape[0] - 1), np.clip(x, 0, cover.shape[1] - 1)]
            seen &= ~(inside & (there > 0.5))
        result.append(replace(truth, visible=seen))
    return result
