"""Neck, head, face and hair."""

from __future__ import annotations

import math

import numpy as np

from veilkit.datasets.generated.cloth import plain
from veilkit.datasets.generated.colours import linear
from veilkit.datasets.generated.garments import Figure
from veilkit.datasets.generated.surfaces import Finish, Material, Spots, limb, loft
from veilkit.datasets.generated.view import Floats

# Outline of a head from crown to chin: height in head heights below the crown, half width, half depth, forward shift.
_SKULL = (
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
_HEAD_HEIGHT = 0.132


def _place(figure: Figure, rows: list[tuple[float, float, float, float]], grow: float = 1.0) -> Floats:
    """Knots of head outlines: shares of the head's height turned into body points."""
    size = _HEAD_HEIGHT * figure.person.build.head
    chin = figure.bones.head
    turn = 0.5 * figure.view.yaw * 0
    del turn
    knots = [
        [
            float(chin[0]),
            float(chin[1]) + size * (1 - y),
            float(chin[2]) + size * z * 0.6,
            size * a * grow,
            size * b * grow,
        ]
        for y, a, b, z in rows
    ]
    return np.array(knots, np.float32)


def draw_head(figure: Figure, look: float) -> None:
    """The head turned by `look` radians from the body, with its hair or head-wear."""
    person, bones = figure.person, figure.bones
    size = _HEAD_HEIGHT * person.build.head
    girth = 0.7 + 0.3 * person.build.girth
    top = bones.head + np.array([0, size * 0.3, -0.004], np.float32)
    limb(
        figure.canvas,
        figure.view,
        (bones.neck + np.array([0, -0.02, -0.006], np.float32), top),
        (0.031 * girth, 0.028 * girth),
        figure.skin(),
    )
    loft(
        figure.canvas,
        figure.view,
        _place(figure, list(_SKULL)),
        Finish(_face(figure), folds=0.02, gloss=0.15),
        turn=look,
    )
    sin, cos = math.sin(look), math.cos(look)

    def on_head(x: float, y: float, z: float) -> Floats:
        return bones.head + np.array(
            [size * (x * cos + z * sin), size * (1 - y), size * (z * cos - x * sin)], np.float32
        )

    if person.hair.style not in ("hijab", "hood"):
        for sign in (1, -1):
            limb(
                figure.canvas,
                figure.view,
                (on_head(sign * 0.37, 0.5, 0.0), on_head(sign * 0.36, 0.63, 0.02)),
                (size * 0.06, size * 0.045),
                figure.skin(),
            )
    if not person.face.mask:
        limb(
            figure.canvas,
            figure.view,
            (on_head(0, 0.52, 0.40), on_head(0, 0.64, 0.47)),
            (size * 0.03, size * 0.058),
            figure.skin(),
        )
    _hair(figure, look, on_head)


def _face(figure: Figure) -> Material:
    """Skin with eyes, brows, mouth and what a face wears; `along` runs from crown to chin."""
    face, hair = figure.person.face, figure.person.hair
    skin, dark = linear(face.skin), linear(hair.colour) * 0.7
    if sum(hair.colour) > 1.6:
        dark = linear((0.35, 0.28, 0.22))
    lips = skin * np.array([0.72, 0.42, 0.42], np.float32)

    def material(spots: Spots) -> Floats:
        az, y = spots.around, spots.along
        colour = np.broadcast_to(skin, (az.size, 3)).copy()

        def blend(weight: Floats, tint: Floats) -> None:
            colour[:] += (tint - colour) * weight[:, None]

        def blot(x: float, row: float, wide: float, high: float) -> Floats:
            return np.exp(-(((np.abs(az) - x) / wide) ** 2) - ((y - row) / high) ** 2).astype(np.float32)

        if face.beard:
            jaw = (1 / (1 + np.exp(-(y - 0.70 - 0.06 * np.cos(az * 2)) * 40))) * (np.abs(az) < 1.7)
            blend((jaw * face.beard * 0.9).astype(np.float32), dark)
        blend(0.35 * blot(0.42, 0.50, 0.26, 0.06), skin * np.float32(0.45))
        blend(0.9 * blot(0.42, 0.51, 0.15, 0.026), linear((0.10, 0.08, 0.08)))
        blend(0.8 * blot(0.44, 0.435, 0.24, 0.022), dark)
        blend(0.3 * blot(0.0, 0.70, 0.16, 0.03), skin * np.float32(0.35))
        blend(0.8 * blot(0.0, 0.795, 0.25, 0.022), lips)
        blend(0.25 * blot(0.0, 0.86, 0.2, 0.02), skin * np.float32(0.5))
        if face.glasses:
            rim = np.abs(np.hypot((np.abs(az) - 0.44) / 0.33, (y - 0.515) / 0.075) - 1) < 0.25
            bridge = (np.abs(y - 0.49) < 0.018) & (np.abs(az) < 1.7) & ((np.abs(az) < 0.15) | (np.abs(az) > 0.74))
            blend(0.85 * (rim | bridge).astype(np.float32), linear((0.06, 0.06, 0.07)))
        if face.mask:
            blend(((y > 0.60) & (np.abs(az) < 1.25)).astype(np.float32), linear((0.78, 0.84, 0.88)))
        return colour

    return material


def _strands(colour: tuple[float, float, float]) -> Material:
    """Hair: its colour with lighter and darker strands."""
    tint = linear(colour)

    def material(spots: Spots) -> Floats:
        strand = (
            1.0 + 0.22 * np.sin(spots.around * 31 + 3 * np.sin(spots.around * 7)) + 0.12 * np.sin(spots.around * 83)
        )
        return (tint * strand[:, None]).astype(np.float32)

    return material


def _hair(figure: Figure, look: float, on_head: object) -> None:
    hair = figure.person.hair
    size = _HEAD_HEIGHT * figure.person.build.head
    canvas, view = figure.canvas, figure.view
    style = hair.style
    strands = Finish(_strands(hair.colour), folds=0.12, gloss=0.35, grain=(3.0, 0.5))
    wear = figure.cloth(plain(hair.cloth), 0.12)
    assert callable(on_head)

    def hairline(front: float, side: float, back: float) -> object:
        """Keeps what lies above a line that runs from the forehead over the ears to the nape (head heights)."""

        def keep(spots: Spots) -> object:
            turn = np.abs(spots.around)
            line = np.interp(
                turn,
                [0.0, 0.75, 1.15, 1.7, 2.3, 3.15],
                [front, front + 0.02, side * 0.7 + 0.3 * front, side, back, back],
            )
            return spots.along < line

        return keep

    def shell(grow: float, front: float, side: float, back: float, finish: Finish, lift: float = 0.03) -> None:
        rows = [(y * 1.0 - lift * (1 - y), a, b, z - 0.02) for y, a, b, z in _SKULL]
        rows = [
            (y, a if y < 0.45 else max(a, 0.34), b if y < 0.45 else max(b, 0.36), z if y < 0.45 else min(z, 0.0))
            for y, a, b, z in rows
        ]
        loft(canvas, view, _place(figure, rows, grow), finish, turn=look, keep=hairline(front, side, back))  # type: ignore[arg-type]

    front = 0.17 + 0.12 * hair.fringe
    if style == "bald":
        return
    if style == "crop":
        shell(1.03, 0.18, 0.44, 0.72, strands, 0.01)
    elif style == "short":
        shell(1.10, front, 0.50, 0.84, strands, 0.05)
    elif style == "afro":
        shell(1.38, front + 0.05, 0.62, 0.95, Finish(_strands(hair.colour), folds=0.4, gloss=0.05), 0.2)
    elif style in ("bob", "long"):
        shell(1.12, front, 0.6, 1.0, strands, 0.05)
        end = 1.0 + 0.2 * hair.length if style == "bob" else 1.35 + 0.75 * hair.length
        rows = [
            (0.28, 0.38, 0.44, -0.04),
            (0.6, 0.41, 0.44, -0.10),
            (0.9, 0.43, 0.42, -0.16),
            (min(1.25, end - 0.02), 0.44, 0.40, -0.24),
            (end, 0.40, 0.38, -0.30),
        ]
        loft(
            canvas,
            view,
            _place(figure, rows, 1.06),
            strands,
            turn=look,
            keep=lambda s: np.abs(s.around) > 1.25 + 0.35 * s.along,
        )
    elif style in ("bun", "ponytail"):
        shell(1.05, 0.18, 0.48, 0.86, strands, 0.02)
        if style == "bun":
            limb(canvas, view, (on_head(0, 0.10, -0.42), on_head(0, 0.16, -0.5)), (size * 0.17, size * 0.15), strands)
        else:
            tail = 0.9 + 0.6 * hair.length
            limb(canvas, view, (on_head(0, 0.22, -0.48), on_head(0, 0.5, -0.66)), (size * 0.1, size * 0.13), strands)
            limb(canvas, view, (on_head(0, 0.5, -0.66), on_head(0, tail, -0.56)), (size * 0.13, size * 0.06), strands)
    elif style == "cap":
        shell(1.04, 0.2, 0.48, 0.8, strands, 0.0)
        shell(1.13, 0.24, 0.30, 0.36, wear, 0.06)
        for x in (-0.16, 0.0, 0.16):
            limb(
                canvas,
                view,
                (on_head(x, 0.25, 0.36), on_head(x * 0.9, 0.30, 0.66)),
                (size * 0.05, size * 0.035),
                wear,
            )
    elif style == "beanie":
        shell(1.04, 0.2, 0.5, 0.85, strands, 0.0)
        shell(1.15, 0.27, 0.40, 0.5, figure.cloth(plain(hair.cloth), 0.2), 0.1)
    else:
        _cover(figure, look, style)


def _cover(figure: Figure, look: float, style: str) -> None:
    """A hood or a headscarf: all but the face."""
    colour = figure.person.hair.cloth if style == "hijab" else figure.person.outfit.cloth.colour
    finish = figure.cloth(plain(colour), 0.22)
    rows = [
        (y - 0.05 * (1 - y), max(a, 0.35 if y > 0.4 else 0.0), max(b, 0.38 if y > 0.4 else 0.0), min(z, 0.0) - 0.03)
        for y, a, b, z in _SKULL
    ]
    rows = [*rows[:-1], (1.1, 0.36, 0.38, -0.05), (1.28, 0.5, 0.42, -0.05)]

    def keep(spots: Spots) -> object:
        row = spots.along * 1.33 - 0.05
        return np.hypot(np.abs(spots.around) / 1.0, (row - 0.58) / 0.44) > 1.0

    loft(figure.canvas, figure.view, _place(figure, rows, 1.14), finish, turn=look, keep=keep)  # type: ignore[arg-type]
