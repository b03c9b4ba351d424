"""Who a generated person is: everything that stays the same from camera to camera and from shot to shot."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from veilkit.synthetic.colours import CLOTH, HAIR, SKIN, TROUSERS, Colour, contrast, draw, shift

PATTERNS = ("plain", "stripes", "bars", "checks", "dots", "block", "halves", "band", "gradient", "camouflage")
_PATTERN_WEIGHTS = (0.34, 0.13, 0.06, 0.11, 0.06, 0.09, 0.03, 0.08, 0.04, 0.06)
TOPS = ("tee", "shirt", "jacket", "open jacket", "coat", "hoodie", "vest", "dress")
LOWERS = ("trousers", "leggings", "shorts", "skirt")
HAIRS = ("short", "crop", "bald", "bob", "long", "bun", "ponytail", "afro", "cap", "beanie", "hijab", "hood")
BAGS = ("none", "backpack", "shoulder", "handbag", "tote")
GLYPHS = 24


@dataclass(frozen=True, slots=True)
class Build:
    """Proportions as factors of an average adult's; `head` is large for a child. stature: metres."""

    stature: float
    shoulders: float
    hips: float
    waist: float
    girth: float
    head: float
    legs: float
    bust: float


@dataclass(frozen=True, slots=True)
class Face:
    """skin: sRGB. beard: 0 none to 1 full."""

    skin: Colour
    beard: float
    glasses: bool
    mask: bool


@dataclass(frozen=True, slots=True)
class Hair:
    """style: one of HAIRS. cloth: the colour of a cap, hood or scarf."""

    style: str
    colour: Colour
    cloth: Colour
    fringe: float
    length: float


@dataclass(frozen=True, slots=True)
class Cloth:
    """A dyed and printed cloth. scale: repeats of the pattern per stature. glyph: the logo, or None."""

    colour: Colour
    second: Colour
    pattern: str
    scale: float
    glyph: int | None = None
    print_colour: Colour = (1.0, 1.0, 1.0)
    print_size: float = 0.0


@dataclass(frozen=True, slots=True)
class Outfit:
    """top: one of TOPS, lower: one of LOWERS. sleeve, leg: the covered share of the limb. hem: height in statures."""

    top: str
    cloth: Cloth
    inner: Cloth
    sleeve: float
    hem: float
    loose: float
    sleeve_colour: Colour | None
    lower: str
    lower_cloth: Cloth
    leg: float
    leg_loose: float
    side_stripe: Colour | None
    shoes: Colour
    soles: Colour
    boots: float
    socks: Colour


@dataclass(frozen=True, slots=True)
class Bag:
    """kind: one of BAGS. side: +1 or -1, the side it hangs on."""

    kind: str
    colour: Colour
    second: Colour
    size: float
    side: int


@dataclass(frozen=True, slots=True)
class Person:
    """One generated identity."""

    build: Build
    face: Face
    hair: Hair
    outfit: Outfit
    bag: Bag


def draw_person(rng: np.random.Generator) -> Person:
    """A person from the random numbers of `rng`."""
    feminine = bool(rng.random() < 0.5)
    child = bool(rng.random() < 0.08)
    return Person(
        _build(rng, feminine, child),
        _face(rng, feminine, child),
        _hair(rng, feminine),
        _outfit(rng, feminine),
        _bag(rng),
    )


def _build(rng: np.random.Generator, feminine: bool, child: bool) -> Build:
    girth = float(np.clip(rng.normal(1.0, 0.14), 0.78, 1.45))
    stature = (1.25 if child else 1.65 if feminine else 1.77) + float(rng.normal(0, 0.06))
    return Build(
        stature=stature,
        shoulders=(0.94 if feminine else 1.05) * float(rng.normal(1, 0.04)) * (0.9 if child else 1.0),
        hips=(1.06 if feminine else 0.98) * float(rng.normal(1, 0.04)),
        waist=(0.90 if feminine else 1.0) * float(rng.normal(1, 0.05)) * (0.6 + 0.4 * girth),
        girth=girth,
        head=1.22 if child else float(rng.normal(1.0 if feminine else 0.98, 0.03)),
        legs=float(rng.normal(0.95 if child else 1.0, 0.025)),
        bust=float(rng.uniform(0.4, 1.0)) if feminine and not child else 0.0,
    )


def _face(rng: np.random.Generator, feminine: bool, child: bool) -> Face:
    skin = shift(rng, SKIN[int(rng.choice(len(SKIN), p=(0.16, 0.2, 0.2, 0.14, 0.1, 0.08, 0.07, 0.05)))], 0.015)
    bearded = not feminine and not child and rng.random() < 0.4
    return Face(
        skin=skin,
        beard=float(rng.uniform(0.4, 1.0)) if bearded else 0.0,
        glasses=bool(rng.random() < 0.2),
        mask=bool(rng.random() < 0.05),
    )


def _hair(rng: np.random.Generator, feminine: bool) -> Hair:
    weights = (
        (0.10, 0.0, 0.0, 0.17, 0.30, 0.10, 0.15, 0.04, 0.02, 0.04, 0.06, 0.02)
        if feminine
        else (0.46, 0.16, 0.08, 0.02, 0.02, 0.01, 0.01, 0.05, 0.10, 0.05, 0.0, 0.04)
    )
    return Hair(
        style=HAIRS[int(rng.choice(len(HAIRS), p=weights))],
        colour=draw(rng, HAIR, 0.02),
        cloth=draw(rng, CLOTH),
        fringe=float(rng.uniform(0.0, 1.0)),
        length=float(rng.uniform(0.0, 1.0)),
    )


def _cloth(rng: np.random.Generator, *, prints: float, plain: float = 0.0) -> Cloth:
    colour = draw(rng, CLOTH)
    pattern = "plain" if rng.random() < plain else PATTERNS[int(rng.choice(len(PATTERNS), p=_PATTERN_WEIGHTS))]
    printed = rng.random() < prints * (1.0 if pattern in ("plain", "gradient", "block", "halves") else 0.25)
    return Cloth(
        colour=colour,
        second=contrast(rng, colour),
        pattern=pattern,
        scale=float(rng.uniform(14, 34)),
        glyph=int(rng.integers(GLYPHS)) if printed else None,
        print_colour=contrast(rng, colour),
        print_size=float(rng.choice([0.045, 0.10, 0.13], p=[0.25, 0.45, 0.3])),
    )


def _outfit(rng: np.random.Generator, feminine: bool) -> Outfit:
    weights = (
        (0.24, 0.12, 0.10, 0.14, 0.12, 0.08, 0.06, 0.14)
        if feminine
        else (0.31, 0.16, 0.14, 0.15, 0.07, 0.14, 0.03, 0.0)
    )
    top = TOPS[int(rng.choice(len(TOPS), p=weights))]
    lower = LOWERS[int(rng.choice(len(LOWERS), p=(0.45, 0.20, 0.13, 0.22) if feminine else (0.80, 0.0, 0.20, 0.0)))]
    short = {"tee": 0.9, "shirt": 0.35, "dress": 0.6, "vest": 1.0}.get(top, 0.0)
    sleeve = float(rng.uniform(0.22, 0.42)) if rng.random() < short else 1.0
    if top == "vest" or (top == "dress" and rng.random() < 0.35):
        sleeve = 0.0
    cloth = _cloth(rng, prints=0.7 if top in ("tee", "hoodie", "jacket", "vest") else 0.2)
    lower_colour = draw(rng, TROUSERS)
    sporty = bool(rng.random() < 0.2)
    skirt_print = (
        "plain" if lower != "skirt" or rng.random() < 0.6 else str(rng.choice(["checks", "dots", "bars", "stripes"]))
    )
    shoes = draw(rng, CLOTH, 0.03)
    return Outfit(
        top=top,
        cloth=cloth,
        inner=_cloth(rng, prints=0.5, plain=0.4),
        sleeve=sleeve,
        hem={
            "coat": float(rng.uniform(0.27, 0.42)),
            "dress": float(rng.uniform(0.22, 0.42)),
            "jacket": float(rng.uniform(0.49, 0.53)),
            "open jacket": float(rng.uniform(0.45, 0.52)),
        }.get(top, float(rng.uniform(0.47, 0.545))),
        loose=float(rng.uniform(1.0, 1.16)) + (0.08 if top in ("coat", "hoodie", "jacket", "open jacket") else 0.0),
        sleeve_colour=contrast(rng, cloth.colour)
        if top in ("tee", "hoodie", "jacket") and rng.random() < 0.18
        else None,
        lower=lower,
        lower_cloth=Cloth(lower_colour, contrast(rng, lower_colour), skirt_print, float(rng.uniform(14, 30))),
        leg=float(rng.uniform(0.42, 0.56)) if lower == "shorts" else float(rng.choice([1.0, 1.0, 0.88])),
        leg_loose=1.0 if lower == "leggings" else float(rng.uniform(1.08, 1.45)),
        side_stripe=contrast(rng, lower_colour) if sporty and lower in ("trousers", "shorts", "leggings") else None,
        shoes=shoes,
        soles=(0.88, 0.88, 0.86) if rng.random() < 0.55 else shift(rng, (0.12, 0.11, 0.10), 0.02),
        boots=float(rng.uniform(0.08, 0.2)) if rng.random() < (0.25 if feminine else 0.08) else 0.0,
        socks=draw(rng, (((0.92, 0.92, 0.9), 3), ((0.1, 0.1, 0.1), 3))),
    )


def _bag(rng: np.random.Generator) -> Bag:
    colour = draw(rng, CLOTH)
    return Bag(
        kind=BAGS[int(rng.choice(len(BAGS), p=(0.40, 0.25, 0.16, 0.11, 0.08)))],
        colour=colour,
        second=contrast(rng, colour),
        size=float(rng.uniform(0.85, 1.2)),
        side=1 if rng.random() < 0.5 else -1,
    )
