"""A portrait: one face, its background and its camera; with the truth about it."""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from veilkit.errors import ConfigError
from veilkit.rng import Randomness
from veilkit.synthetic.cameras import develop
from veilkit.synthetic.faces.backdrop import backdrop
from veilkit.synthetic.faces.capture import Capture, Ranges, draw_capture
from veilkit.synthetic.faces.identity import Face, draw_face
from veilkit.synthetic.faces.lens import Lens
from veilkit.synthetic.faces.render import Drawn, draw
from veilkit.synthetic.faces.truth import FaceTruth, face_truth
from veilkit.synthetic.filters import resize
from veilkit.synthetic.view import Floats

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
    """Shot number `shot` of an identity: it tells nothing of who that is."""
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
