"""Neck, head, face, hair and what covers it. Heights on a head are shares of its height below the crown: 0 at the
crown, 1 at the chin.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from veilkit.synthetic.arrays import Floats
from veilkit.synthetic.colours import Colour, linear
from veilkit.synthetic.people.canvas import Finish, Keep, Material, Spots
from veilkit.synthetic.people.cloth import plain
from veilkit.synthetic.people.garments import Figure
from veilkit.synthetic.people.surfaces import limb, loft

Outline = Sequence[tuple[float, float, float, float]]
"""Rows of height, half width, half depth and forward shift, in head heights."""

SKULL: Outline = (
    (0.0, 0.05, 0.06, -0.04),
    (0.015, 0.13, 0.16, -0.04),
    (0.05, 0.22, 0.27, -0.04),
    (0.10, 0.29, 0.34, -0.03),
    (0.18, 0.34, 0.40, -0.02),
    (0.28, 0.365, 0.43, -0.01),
    (0.42, 0.37, 0.43, 0.0),
    (0.56, 0.355, 0.41, 0.01),
    (0.68, 0.33, 0.37, 0.04),
    (0.80, 0.285, 0.31, 0.08),
    (0.90, 0.22, 0.25, 0.12),
    (0.97, 0.14, 0.17, 0.16),
    (1.0, 0.06, 0.08, 0.18),
)
_HEAD_HEIGHT = 0.132  # of the stature of an average adult


@dataclass(frozen=True, slots=True)
class Head:
    """The head of `figure`, turned by `look` radians from the body."""

    figure: Figure
    look: float

    @property
    def size(self) -> float:
        """From crown to chin, in statures."""
        return _HEAD_HEIGHT * self.figure.person.build.head

    def point(self, x: float, y: float, z: float) -> Floats:
        """The body point (3,) at x to the side, y below the crown and z forward, in head heights."""
        sin, cos = math.sin(self.look), math.cos(self.look)
        step = np.array([x * cos + z * sin, 1 - y, z * cos - x * sin], np.float32)
        return self.figure.bones.head + np.float32(self.size) * step

    def wrap(self, outline: Outline, finish: Finish, grow: float = 1.0, keep: Keep | None = None) -> None:
        """Draw the loft of `outline`, its sections `grow` times as large; heights stay."""
        rows = [[*self.point(0.0, y, 0.6 * z), self.size * a * grow, self.size * b * grow] for y, a, b, z in outline]
        knots = np.array(rows, np.float32)
        loft(self.figure.canvas, knots, finish, turn=self.look, keep=keep)

    def blob(self, start: Floats, end: Floats, radii: tuple[float, float], finish: Finish) -> None:
        """Draw a limb between two body points; radii in head heights."""
        limb(self.figure.canvas, (start, end), (self.size * radii[0], self.size * radii[1]), finish)


def draw_head(head: Head) -> None:
    """Neck, skull with its face, ears and nose; hair is drawn by `hair`."""
    figure, person = head.figure, head.figure.person
    girth = 0.7 + 0.3 * person.build.girth
    skin = figure.skin()
    base = figure.bones.neck + np.array([0, -0.02, -0.006], np.float32)
    nape = figure.bones.head + np.array([0, head.size * 0.3, -0.004], np.float32)
    limb(figure.canvas, (base, nape), (0.031 * girth, 0.028 * girth), skin)
    head.wrap(SKULL, Finish(_face(figure), folds=0.02, gloss=0.15))
    if person.hair.style not in ("hijab", "hood"):
        for sign in (1, -1):
            head.blob(head.point(sign * 0.37, 0.5, 0.0), head.point(sign * 0.36, 0.63, 0.02), (0.06, 0.045), skin)
    if not person.face.mask:
        head.blob(head.point(0, 0.52, 0.40), head.point(0, 0.64, 0.47), (0.03, 0.058), skin)


def _face(figure: Figure) -> Material:
    """Skin with eyes, brows, mouth and what a face wears."""
    face, hair = figure.person.face, figure.person.hair
    skin, eye, rim, paper = (
        linear(c) for c in (face.skin, (0.1, 0.08, 0.08), (0.06, 0.06, 0.07), (0.78, 0.84, 0.88))
    )
    dark = linear(hair.colour) * np.float32(0.7) if sum(hair.colour) < 1.6 else linear((0.35, 0.28, 0.22))
    lips = skin * np.array([0.72, 0.42, 0.42], np.float32)

    def material(spots: Spots) -> Floats:
        turn, y = np.abs(spots.around), spots.along
        colour = np.broadcast_to(skin, (y.size, 3)).copy()

        def blend(weight: Floats, tint: Floats) -> None:
            colour[:] += (tint - colour) * weight[:, None]

        def blot(strength: float, at: tuple[float, float], wide: float, high: float, tint: Floats) -> None:
            """A soft spot on both sides of the nose: `at` is the angle from it and the height."""
            weight = strength * np.exp(-(((turn - at[0]) / wide) ** 2) - ((y - at[1]) / high) ** 2)
            blend(weight.astype(np.float32), tint)

        if face.beard:
            jaw = 1 / (1 + np.exp(-(y - 0.70 - 0.06 * np.cos(turn * 2)) * 40))
            blend((0.9 * face.beard * jaw * (turn < 1.7)).astype(np.float32), dark)
        blot(0.35, (0.42, 0.50), 0.26, 0.06, skin * np.float32(0.45))
        blot(0.9, (0.42, 0.51), 0.15, 0.026, eye)
        blot(0.8, (0.44, 0.435), 0.24, 0.022, dark)
        blot(0.3, (0.0, 0.70), 0.16, 0.03, skin * np.float32(0.35))
        blot(0.8, (0.0, 0.795), 0.25, 0.022, lips)
        blot(0.25, (0.0, 0.86), 0.2, 0.02, skin * np.float32(0.5))
        if face.glasses:
            ring = np.abs(np.hypot((turn - 0.44) / 0.33, (y - 0.515) / 0.075) - 1) < 0.25
            bars = (np.abs(y - 0.49) < 0.018) & (turn < 1.7) & ((turn < 0.15) | (turn > 0.74))
            blend((0.85 * (ring | bars)).astype(np.float32), rim)
        if face.mask:
            blend(((y > 0.60) & (turn < 1.25)).astype(np.float32), paper)
        return colour

    return material


def draw_hair(head: Head) -> None:
    """The hair of the person, or the cap, beanie, hood or headscarf over it."""
    hair = head.figure.person.hair
    strands = Finish(_strands(hair.colour), folds=0.12, gloss=0.35, grain=(3.0, 0.5))
    worn = head.figure.cloth(plain(hair.cloth), 0.16)
    front = 0.17 + 0.12 * hair.fringe
    match hair.style:
        case "crop":
            _shell(head, strands, 1.03, 0.01, _above(0.18, 0.44, 0.72))
        case "short":
            _shell(head, strands, 1.10, 0.05, _above(front, 0.50, 0.84))
        case "afro":
            curls = Finish(_strands(hair.colour), folds=0.4, gloss=0.05)
            _shell(head, curls, 1.38, 0.2, _above(front + 0.05, 0.62, 0.95))
        case "bob" | "long":
            _shell(head, strands, 1.12, 0.05, _above(front, 0.6, 1.0))
            _fall(head, strands, 1.0 + 0.2 * hair.length if hair.style == "bob" else 1.35 + 0.75 * hair.length)
        case "bun":
            _shell(head, strands, 1.05, 0.02, _above(0.18, 0.48, 0.86))
            head.blob(head.point(0, 0.10, -0.42), head.point(0, 0.16, -0.5), (0.17, 0.15), strands)
        case "ponytail":
            _shell(head, strands, 1.05, 0.02, _above(0.18, 0.48, 0.86))
            knot, bend = head.point(0, 0.22, -0.48), head.point(0, 0.5, -0.66)
            head.blob(knot, bend, (0.1, 0.13), strands)
            head.blob(bend, head.point(0, 0.9 + 0.6 * hair.length, -0.56), (0.13, 0.06), strands)
        case "cap":
            _shell(head, strands, 1.04, 0.0, _above(0.2, 0.48, 0.8))
            _shell(head, worn, 1.13, 0.06, _above(0.24, 0.30, 0.36))
            for x in (-0.16, 0.0, 0.16):
                head.blob(head.point(x, 0.25, 0.36), head.point(0.9 * x, 0.30, 0.66), (0.05, 0.035), worn)
        case "beanie":
            _shell(head, strands, 1.04, 0.0, _above(0.2, 0.5, 0.85))
            _shell(head, worn, 1.15, 0.1, _above(0.27, 0.40, 0.5))
        case "hijab":
            _cover(head, hair.cloth)
        case "hood":
            _cover(head, head.figure.person.outfit.cloth.colour)


def _strands(colour: Colour) -> Material:
    """The colour of hair with lighter and darker strands."""
    tint = linear(colour)

    def material(spots: Spots) -> Floats:
        turn = spots.around
        strand = 1.0 + 0.22 * np.sin(turn * 31 + 3 * np.sin(turn * 7)) + 0.12 * np.sin(turn * 83)
        return np.asarray(tint * strand[:, None], np.float32)

    return material


def _above(front: float, side: float, back: float) -> Keep:
    """Keeps what lies above a line that runs from the forehead over the ears to the nape."""
    turns = (0.0, 0.75, 1.15, 1.7, 2.3, 3.15)
    heights = (front, front + 0.02, side * 0.7 + 0.3 * front, side, back, back)

    def keep(spots: Spots) -> NDArray[np.bool_]:
        return np.asarray(spots.along < np.interp(np.abs(spots.around), turns, heights))

    return keep


def _shell(head: Head, finish: Finish, grow: float, lift: float, keep: Keep) -> None:
    """A cap round the skull, `grow` times as wide and `lift` higher; below the ears it falls straight."""
    rows = [
        (y - lift * (1 - y), *((a, b, z - 0.02) if y < 0.45 else (max(a, 0.34), max(b, 0.36), min(z - 0.02, 0.0))))
        for y, a, b, z in SKULL
    ]
    head.wrap(rows, finish, grow, keep)


def _fall(head: Head, finish: Finish, end: float) -> None:
    """Hair that falls behind the face down to the height `end`."""
    rows = (
        (0.28, 0.38, 0.44, -0.04),
        (0.6, 0.41, 0.44, -0.10),
        (0.9, 0.43, 0.42, -0.16),
        (min(1.25, end - 0.02), 0.44, 0.40, -0.24),
        (end, 0.40, 0.38, -0.30),
    )
    head.wrap(rows, finish, 1.06, lambda spots: np.abs(spots.around) > 1.25 + 0.35 * spots.along)


def _cover(head: Head, colour: Colour) -> None:
    """A hood or a headscarf: all but the face."""
    rows = [
        (y - 0.05 * (1 - y), max(a, 0.35 if y > 0.4 else 0.0), max(b, 0.38 if y > 0.4 else 0.0), min(z, 0.0) - 0.03)
        for y, a, b, z in SKULL[:-1]
    ]
    rows += [(1.1, 0.36, 0.38, -0.05), (1.28, 0.5, 0.42, -0.05)]

    def keep(spots: Spots) -> NDArray[np.bool_]:
        return np.asarray(np.hypot(spots.around, (spots.along * 1.33 - 0.63) / 0.44) > 1.0)

    head.wrap(rows, head.figure.cloth(plain(colour), 0.22), 1.14, keep)
