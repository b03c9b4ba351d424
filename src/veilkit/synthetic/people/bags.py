"""Bags: on the back, across the body or in the hand."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from veilkit.synthetic.arrays import Floats
from veilkit.synthetic.colours import linear
from veilkit.synthetic.people.canvas import Finish, Material, Spots
from veilkit.synthetic.people.cloth import plain
from veilkit.synthetic.people.garments import Figure, trunk
from veilkit.synthetic.people.surfaces import limb, loft


def _panels(colour: tuple[float, float, float], second: tuple[float, float, float], pocket: float) -> Material:
    """The bag's colour with a pocket of the second one on the lower part, and a seam above it."""
    first, other = linear(colour), linear(second)

    def material(spots: Spots) -> Floats:
        low = ((spots.along > pocket) & (spots.along < 0.9) & (np.abs(spots.side) < 0.055))[:, None]
        seam = (np.abs(spots.along - pocket) < 0.03)[:, None]
        tint = np.where(low, other, first)
        return np.where(seam, tint * 0.5, tint).astype(np.float32)

    return material


def draw_bag(figure: Figure) -> None:
    """The bag of the person, with its straps."""
    kind = figure.person.bag.kind
    if kind == "backpack":
        _backpack(figure)
    elif kind == "shoulder":
        _shoulder_bag(figure)
    elif kind in ("handbag", "tote"):
        _hand_bag(figure, kind)


def _stack(x: float, top: float, z: float, a: float, b: float, height: float) -> Floats:
    """A box with rounded top and bottom: knots (K, 5)."""
    shape = ((0.0, 0.72), (0.04, 0.88), (0.12, 0.98), (0.3, 1.0), (0.9, 1.0), (0.97, 0.95), (1.0, 0.85))
    return np.array([[x, top - height * t, z, a * w, b * w] for t, w in shape], np.float32)


def _backpack(figure: Figure) -> None:
    bag, bones = figure.person.bag, figure.bones
    finish = figure.cloth(_panels(bag.colour, bag.second, 0.55), 0.15)
    top = float(bones.neck[1]) - 0.03
    z = float(bones.neck[2] + bones.waist[2]) / 2
    size = bag.size
    loft(
        figure.canvas,
        _stack(float(bones.neck[0]), top, z - 0.062 - 0.04 * size, 0.078 * size, 0.045 * size, 0.22 * size),
        finish,
        boxy=True,
    )
    strap = figure.cloth(plain(bag.colour), 0.1)
    knots = trunk(figure, top - 0.2, figure.person.outfit.loose * 1.04)
    knots[:, 4] *= np.float32(1.03)
    loft(
        figure.canvas,
        knots,
        strap,
        keep=lambda s: (np.abs(np.abs(s.side) - 0.066) < 0.011) & (np.abs(s.around) < 1.5) & (s.down < 0.2),
    )


def _shoulder_bag(figure: Figure) -> None:
    bag, bones, side = figure.person.bag, figure.bones, figure.person.bag.side
    finish = Finish(_panels(bag.colour, bag.second, 0.4), folds=0.08, gloss=0.15)
    hip = float(bones.pelvis[1])
    x = side * (0.118 * figure.person.build.hips * (0.6 + 0.4 * figure.person.build.girth) + 0.01)
    size = bag.size
    loft(figure.canvas, _stack(x, hip + 0.075, -0.015, 0.032 * size, 0.07 * size, 0.105 * size), finish, boxy=True)
    knots = trunk(figure, hip, figure.person.outfit.loose * 1.03)
    knots[:, 4] *= np.float32(1.04)

    def sash(spots: Spots) -> NDArray[np.bool_]:
        lean = side * (spots.along * 1.75 - 0.85) * np.cos(spots.around)
        return np.asarray(np.abs(np.sin(spots.around) - lean) < 0.11)

    loft(figure.canvas, knots, figure.cloth(plain(bag.colour), 0.05), keep=sash)


def _hand_bag(figure: Figure, kind: str) -> None:
    bag = figure.person.bag
    hand = figure.bones.hands[0 if bag.side > 0 else 1]
    x, y, z = (float(v) for v in hand)
    size = bag.size
    drop, tall, deep = (0.035, 0.10, 0.06) if kind == "handbag" else (0.07, 0.15, 0.065)
    material = _panels(bag.colour, bag.second, 0.5 if kind == "handbag" else 0.25)
    x += bag.side * 0.012
    loft(
        figure.canvas,
        _stack(x, y - drop, z, 0.022, deep * size, tall * size),
        Finish(material, folds=0.1, gloss=0.15),
        boxy=True,
    )
    for end in (-0.6, 0.6):
        grip = np.array([x, y - drop - 0.005, z + end * deep], np.float32)
        limb(figure.canvas, (hand, grip), (0.005, 0.005), Finish(plain(bag.colour)))
