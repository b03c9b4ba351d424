"""Who a generated face is: the shape and the colours that no expression, pose or light changes."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace

import numpy as np

from veilkit.synthetic.colours import CLOTH, HAIR, SKIN, Colour, draw, shift

STYLES = ("bald", "buzz", "short", "swept", "fringe", "bob", "long", "afro", "bun")
FRAMES = ("none", "round", "square", "thin")
BEARDS = ("none", "stubble", "moustache", "goatee", "full")
_IRIS: tuple[tuple[Colour, float], ...] = (
    ((0.24, 0.15, 0.09), 9),
    ((0.38, 0.25, 0.13), 5),
    ((0.42, 0.40, 0.22), 3),  # hazel
    ((0.36, 0.48, 0.60), 4),
    ((0.46, 0.52, 0.55), 2),
    ((0.33, 0.46, 0.33), 2),
)


@dataclass(frozen=True, slots=True)
class Shape:
    """Bones and flesh, each as standard deviations from the average face, about -2.5 to 2.5.

    masculine moves brow ridge, jaw, chin, neck and nose together; age deepens folds and thins lips.
    """

    masculine: float
    age: float
    weight: float
    width: float
    length: float
    forehead: float
    forehead_slope: float
    brow_ridge: float
    cheekbones: float
    cheek_height: float
    jaw_width: float
    jaw_angle: float
    chin_length: float
    chin_width: float
    chin_forward: float
    chin_cleft: float
    nose_length: float
    nose_width: float
    nose_bridge: float
    nose_hump: float
    nose_height: float
    nose_tip: float
    nose_tilt: float
    eye_distance: float
    eye_size: float
    eye_opening: float
    eye_tilt: float
    eye_depth: float
    eye_height: float
    brow_height: float
    brow_arch: float
    brow_tilt: float
    brow_thickness: float
    brow_length: float
    mouth_width: float
    mouth_height: float
    mouth_forward: float
    upper_lip: float
    lower_lip: float
    lip_bow: float
    lip_corners: float
    ear_size: float
    ear_out: float


@dataclass(frozen=True, slots=True)
class Complexion:
    """Colours are sRGB. ruddy, freckles, circles (under the eyes) and gloss from 0 to 1. moles: (u, v, radius)."""

    skin: Colour
    lips: Colour
    iris: Colour
    brows: Colour
    ruddy: float
    freckles: float
    circles: float
    gloss: float
    moles: tuple[tuple[float, float, float], ...]


@dataclass(frozen=True, slots=True)
class Coiffure:
    """style: one of STYLES. line: mm of the hairline above the average one. part: -1 to 1, where it parts."""

    style: str
    colour: Colour
    line: float
    recede: float
    volume: float
    part: float
    length: float
    curl: float


@dataclass(frozen=True, slots=True)
class Attributes:
    """frame: one of FRAMES. beard: one of BEARDS. make_up, from 0 to 1, darkens the lashes and the lips."""

    frame: str
    frame_colour: Colour
    beard: str
    beard_density: float
    make_up: float
    cloth: Colour
    neckline: float


@dataclass(frozen=True, slots=True)
class Face:
    """One generated identity. texture: seed of the fine pattern of skin and hair."""

    shape: Shape
    complexion: Complexion
    hair: Coiffure
    attributes: Attributes
    texture: int


def draw_face(rng: np.random.Generator) -> Face:
    """A face from the random numbers of `rng`."""
    shape = _shape(rng)
    masculine = shape.masculine > 0
    complexion = _complexion(rng, shape)
    hair = _hair(rng, shape, complexion)
    dark = np.array(hair.colour) * 0.75 if sum(hair.colour) < 1.4 else np.array(hair.colour) * 0.62
    dark = np.minimum(dark, 0.62 * np.array(complexion.skin))
    brows = shift(rng, (float(dark[0]), float(dark[1]), float(dark[2])), 0.015)
    complexion = replace(complexion, brows=brows)
    beard = BEARDS[int(rng.choice(len(BEARDS), p=(0.42, 0.26, 0.08, 0.09, 0.15)))] if masculine else "none"
    attributes = Attributes(
        frame=FRAMES[int(rng.choice(len(FRAMES), p=(0.8, 0.07, 0.08, 0.05)))],
        frame_colour=draw(rng, (((0.06, 0.06, 0.07), 5), ((0.25, 0.15, 0.09), 3), ((0.5, 0.5, 0.52), 2))),
        beard=beard,
        beard_density=float(rng.uniform(0.45, 1.0)),
        make_up=0.0 if masculine or rng.random() < 0.4 else float(rng.uniform(0.3, 1.0)),
        cloth=draw(rng, CLOTH),
        neckline=float(rng.uniform(0, 1)),
    )
    return Face(shape, complexion, hair, attributes, int(rng.integers(2**31)))


def _shape(rng: np.random.Generator) -> Shape:
    values = np.clip(rng.normal(0, 1.15, len(fields(Shape))), -2.4, 2.4)
    shape = dict(zip((each.name for each in fields(Shape)), (float(value) for value in values), strict=True))
    sex = 1.0 if rng.random() < 0.5 else -1.0
    shape["masculine"] = sex * float(rng.uniform(0.5, 1.3))
    for name, share in (
        ("brow_ridge", 0.7),
        ("jaw_width", 0.55),
        ("brow_thickness", 0.6),
        ("brow_height", -0.5),
        ("nose_width", 0.3),
        ("upper_lip", -0.35),
        ("lower_lip", -0.25),
        ("eye_size", -0.35),
        ("chin_width", 0.5),
    ):
        shape[name] = float(np.clip(shape[name] + share * sex, -2.6, 2.6))
    return Shape(**shape)


def _complexion(rng: np.random.Generator, shape: Shape) -> Complexion:
    skin = shift(rng, SKIN[int(rng.choice(len(SKIN), p=(0.14, 0.17, 0.17, 0.15, 0.13, 0.1, 0.08, 0.06)))], 0.018)
    fair = float(np.clip((np.mean(skin) - 0.35) / 0.4, 0, 1))
    tint = np.array([0.86, 0.60, 0.60]) if fair > 0.4 else np.array([0.86, 0.66, 0.68])
    lips = np.array(skin) * (tint + rng.normal(0, 0.035, 3))
    brown = rng.random() > fair * 0.85
    moles = tuple(
        (float(rng.uniform(-48, 48)), float(rng.uniform(-95, 45)), float(rng.uniform(0.7, 1.6)))
        for _ in range(int(rng.poisson(1.1)))
    )
    return Complexion(
        skin=skin,
        lips=(float(lips[0]), float(lips[1]), float(lips[2])),
        iris=draw(rng, _IRIS[:2] if brown else _IRIS, 0.02),
        brows=(0.1, 0.08, 0.06),
        ruddy=float(rng.uniform(0.1, 1.0)),
        freckles=float(rng.uniform(0.3, 1.0)) if fair > 0.5 and rng.random() < 0.22 else 0.0,
        circles=float(np.clip(0.25 + 0.12 * shape.age + rng.normal(0, 0.15), 0, 1)),
        gloss=float(rng.uniform(0.3, 1.0)),
        moles=moles,
    )


def _hair(rng: np.random.Generator, shape: Shape, complexion: Complexion) -> Coiffure:
    masculine = shape.masculine > 0
    #          bald  buzz  short swept fringe bob  long  afro  bun
    weights = (0.06, 0.12, 0.34, 0.24, 0.12, 0.01, 0.04, 0.07, 0.0)
    if not masculine:
        weights = (0.0, 0.02, 0.06, 0.05, 0.09, 0.21, 0.36, 0.06, 0.15)
    dark = float(np.mean(complexion.skin)) < 0.5
    palette = HAIR[:3] if dark else HAIR
    if shape.age > 1.3 and rng.random() < 0.7:
        palette = HAIR[-1:]
    return Coiffure(
        style=STYLES[int(rng.choice(len(STYLES), p=weights))],
        colour=draw(rng, palette, 0.02),
        line=float(rng.normal(0, 4.5)),
        recede=float(
            np.clip(rng.normal(0.25 if masculine else 0.0, 0.3) + (0.15 * shape.age if masculine else 0), 0, 1)
        ),
        volume=float(rng.uniform(0, 1)),
        part=float(rng.uniform(-1, 1)),
        length=float(rng.uniform(0, 1)),
        curl=0.7 * float(rng.uniform(0, 1)) ** 3,
    )
