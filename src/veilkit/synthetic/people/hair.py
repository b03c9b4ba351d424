"""Hair and what covers it. Heights on a head as in `head`."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from veilkit.synthetic.colours import Colour, linear
from veilkit.synthetic.people.cloth import plain
from veilkit.synthetic.people.head import SKULL, Head
from veilkit.synthetic.surfaces import Finish, Keep, Material, Spots
from veilkit.synthetic.view import Floats


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
