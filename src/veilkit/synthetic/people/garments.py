"""Dressing a skeleton: legs and lower garment, trunk and top, arms and sleeves, shoes."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from veilkit.synthetic.arrays import Floats
from veilkit.synthetic.people.body import Skeleton
from veilkit.synthetic.people.canvas import Canvas, Finish, Material, Spots
from veilkit.synthetic.people.cloth import plain, woven
from veilkit.synthetic.people.identity import Cloth, Person
from veilkit.synthetic.people.surfaces import limb, loft


@dataclass(frozen=True, slots=True)
class Figure:
    """A person in a pose before a viewer, and the canvas it is drawn on. crease: where this shot's wrinkles lie."""

    person: Person
    bones: Skeleton
    canvas: Canvas
    crease: tuple[float, float]

    def skin(self) -> Finish:
        """The finish of bare skin."""
        return Finish(plain(self.person.face.skin), folds=0.03, gloss=0.12)

    def cloth(self, material: Material, folds: float = 0.2, gloss: float = 0.0, *, tall: bool = False) -> Finish:
        """Cloth with wrinkles; `tall` ones hang down as in skirts and coats."""
        return Finish(material, folds, gloss, (1.4, 0.35) if tall else (0.7, 1.0), self.crease)


def draw_clothes(figure: Figure) -> None:
    """Everything below the neck but bags."""
    _legs(figure)
    _top(figure)
    _arms(figure)


def _mix(a: Floats, b: Floats, t: float) -> Floats:
    return (a + (b - a) * np.float32(t)).astype(np.float32)


def _striped_seam(material: Material, colour: tuple[float, float, float] | None, side: int) -> Material:
    """`material` with a stripe of `colour` down the outer side."""
    if colour is None:
        return material
    stripe = plain(colour)

    def sewn(spots: Spots) -> Floats:
        outer = np.abs(spots.around - side * math.pi / 2) < 0.35
        return np.where(outer[:, None], stripe(spots), material(spots)).astype(np.float32)

    return sewn


def _legs(figure: Figure) -> None:
    person, bones, outfit = figure.person, figure.bones, figure.person.outfit
    girth = 0.55 + 0.45 * person.build.girth
    thigh, knee, calf, ankle = 0.047 * girth, 0.031 * girth, 0.031 * girth, 0.0195
    skirted = outfit.lower == "skirt" or outfit.top == "dress"
    covered = 0.0 if skirted else outfit.leg
    wide = outfit.leg_loose
    cloth = woven(outfit.lower_cloth)
    for i, sign in ((0, 1), (1, -1)):
        hip, joint, foot, toe = bones.hips[i], bones.knees[i], bones.ankles[i], bones.toes[i]
        bulge = _mix(joint, foot, 0.3) + np.array([0, 0, -0.006], np.float32)
        if covered < 0.95:
            if covered < 0.5:
                limb(figure.canvas, (hip, joint), (thigh * 0.95, knee), figure.skin())
            limb(figure.canvas, (joint, bulge), (knee * 0.97, calf * 0.97), figure.skin())
            limb(figure.canvas, (bulge, foot), (calf, ankle), figure.skin())
        if covered > 0:
            finish = figure.cloth(_striped_seam(cloth, outfit.side_stripe, sign), 0.22)
            upper = min(1.0, covered / 0.5)
            end = _mix(hip, joint, upper)
            r_knee = knee * (1.0 + (wide - 1.0) * 0.9) + 0.002
            r_end = thigh + (r_knee - thigh) * upper + (0.006 if covered < 0.9 else 0.0)
            limb(figure.canvas, (hip, end), (thigh * (1 + 0.25 * (wide - 1)), r_end), finish, cut=covered < 0.5)
            if covered > 0.5:
                lower = (covered - 0.5) / 0.5
                r_foot = ankle * (1.05 + 1.1 * (wide - 1.0)) + 0.003
                stop = _mix(joint, foot, lower * 1.03)
                limb(figure.canvas, (joint, stop), (r_knee, r_foot), finish, cut=True, start=0.24)
        _shoe(figure, foot, toe, joint)
    if not skirted:
        loft(figure.canvas, _pelvis(figure, 1 + 0.12 * (wide - 1)), figure.cloth(cloth, 0.15))
    if outfit.lower == "skirt" and outfit.top != "dress":
        knots = _draped(figure, 0.585, max(0.24, 0.47 - 0.22 * outfit.leg), 1.0 + 0.25 * (wide - 1.0))
        loft(figure.canvas, knots, figure.cloth(woven(outfit.lower_cloth), 0.3, tall=True))


def _shoe(figure: Figure, ankle: Floats, toe: Floats, knee: Floats) -> None:
    outfit = figure.person.outfit
    heel = ankle + (toe - ankle) * np.float32(-0.12) + np.array([0, -0.018, 0], np.float32)
    leather = Finish(plain(outfit.shoes), folds=0.05, gloss=0.25)
    tread = Finish(plain(outfit.soles))
    low = np.array([0, -0.007, 0], np.float32)
    limb(figure.canvas, (heel + low, toe + low), (0.0235, 0.0195), tread)
    limb(figure.canvas, (heel, toe), (0.0225, 0.0185), leather)
    limb(figure.canvas, (ankle, _mix(ankle, toe, 0.5)), (0.0235, 0.019), leather)
    if outfit.boots:
        limb(figure.canvas, (_mix(ankle, knee, outfit.boots * 3), ankle), (0.032, 0.025), leather)
    elif outfit.leg < 0.95 or outfit.lower == "skirt" or outfit.top == "dress":
        limb(figure.canvas, (_mix(ankle, knee, 0.16), ankle), (0.0225, 0.0215), Finish(plain(outfit.socks)))


def _trunk_rows(figure: Figure, loose: float) -> list[tuple[float, float, float]]:
    """(share from neck to pelvis, half width, half depth) of the clothed trunk down to the hips."""
    build = figure.person.build
    girth, sh = build.girth, build.shoulders
    belly = 0.055 * build.waist * (1 + 0.25 * max(0.0, girth - 1.0))
    return [
        (-0.05, 0.031, 0.033),
        (0.0, 0.037, 0.038),
        (0.03, 0.060 * sh, 0.043),
        (0.06, 0.087 * sh, 0.047),
        (0.10, 0.104 * sh, 0.052),
        (0.20, 0.101 * sh * (0.7 + 0.3 * girth), 0.058 * girth * loose),
        (0.36, 0.094 * sh * (0.6 + 0.4 * girth) * loose, (0.061 + 0.012 * build.bust) * girth * loose),
        (0.50, 0.086 * (0.4 * sh + 0.6 * build.waist) * loose, (0.057 + 0.004 * build.bust) * girth * loose),
        (0.64, 0.081 * build.waist * loose, belly * loose),
        (0.80, 0.085 * (0.5 * build.waist + 0.5 * build.hips) * (0.5 + 0.5 * girth) * loose, 0.058 * girth * loose),
        (0.97, 0.090 * build.hips * (0.55 + 0.45 * girth) * loose, 0.063 * girth * loose),
    ]


def trunk(figure: Figure, hem: float, loose: float) -> Floats:
    """Knots (K, 5) from the neck to the height `hem`; below the hips the cloth follows the legs."""
    bones = figure.bones
    rows = []
    for share, a, b in _trunk_rows(figure, loose):
        at = _mix(bones.neck, bones.pelvis, share)
        rows.append([*at, a, b])
    last = rows[-1]
    if hem < last[1] - 0.01:
        drop = float(hem - last[1])
        steps = (0.25, 0.5, 0.75, 1.0)
        rows += [_leg_ring(figure, last[1] + drop * t, last, 1.0 + 0.1 * (loose - 1) * t) for t in steps]
    else:
        rows = [row for row in rows if row[1] > hem]
        rows.append([last[0], hem, last[2], rows[-1][3], rows[-1][4]])
    return np.array(rows, np.float32)


def _leg_ring(figure: Figure, height: float, last: list[float], flare: float) -> list[float]:
    """The ring at `height` that holds both legs: cloth that hangs from `last` cannot be narrower than them."""
    bones = figure.bones
    xs, zs = [], []
    for i in (0, 1):
        chain = np.stack([bones.hips[i], bones.knees[i], bones.ankles[i]])
        xs.append(float(np.interp(-height, -chain[:, 1], chain[:, 0])))
        zs.append(float(np.interp(-height, -chain[:, 1], chain[:, 2])))
    radius = 0.045
    a = max(last[3] * flare, max(abs(x) for x in xs) + radius)
    b = max(last[4] * flare, (max(zs) - min(zs)) / 2 + radius)
    return [last[0], height, (max(zs) + min(zs)) / 2, a, b]


def _pelvis(figure: Figure, loose: float) -> Floats:
    """The seat of trousers: from the waist to where the legs part."""
    whole = trunk(figure, float(figure.bones.pelvis[1]) - 0.055, loose)
    knots: Floats = whole[whole[:, 1] < figure.bones.waist[1] + 0.02]
    knots[-1, 3:] *= np.float32(0.9)
    return knots


def _draped(figure: Figure, waist: float, hem: float, flare: float) -> Floats:
    """A skirt: from the waist to `hem`, wider by `flare`."""
    knots = trunk(figure, hem, 1.02)
    knots = knots[knots[:, 1] < waist + 0.05]
    knots[:, 3] *= np.linspace(1.0, flare, len(knots), dtype=np.float32)
    knots[:, 4] *= np.linspace(1.0, flare, len(knots), dtype=np.float32)
    return knots


def _seams(material: Material, half: float, depth: float) -> Material:
    """`material` with a darker line down the front: a zip or a row of buttons."""

    def sewn(spots: Spots) -> Floats:
        line = (np.abs(spots.side) < half) & (np.abs(spots.around) < 1.0)
        return np.asarray(material(spots) * np.where(line, depth, 1.0)[:, None], np.float32)

    return sewn


def _neckline(material: Material, skin: Material, drop: float) -> Material:
    """`material` below a round neckline `drop` statures deep in front, skin above it."""

    def cut(spots: Spots) -> Floats:
        edge = 0.022 + drop * np.clip(np.cos(spots.around), 0, 1) ** 3 * (np.abs(spots.around) < 1.2)
        return np.where((spots.down < edge)[:, None], skin(spots), material(spots)).astype(np.float32)

    return cut


def _top(figure: Figure) -> None:
    person, outfit = figure.person, figure.person.outfit
    skin = plain(person.face.skin)
    tall = outfit.top in ("coat", "dress")
    folds = 0.26 if outfit.top in ("coat", "jacket", "open jacket", "hoodie") else 0.2
    worn = woven(outfit.cloth, prints=True, chest=outfit.top != "open jacket")
    knots = trunk(figure, outfit.hem, outfit.loose)
    if outfit.top == "open jacket" or (outfit.top == "coat" and outfit.inner.scale > 24):
        inner = _neckline(woven(outfit.inner, prints=True), skin, 0.02)
        loft(figure.canvas, trunk(figure, max(outfit.hem, 0.5), 0.97), figure.cloth(inner, 0.16))
        knots[:, 4] *= np.float32(1.05)
        loft(
            figure.canvas,
            knots,
            figure.cloth(worn, folds, 0.05, tall=tall),
            keep=lambda spots: np.abs(spots.around) > 0.2 + 0.35 * np.sqrt(np.clip(spots.along, 0, 1)),
        )
        return
    if outfit.top in ("tee", "vest", "dress"):
        worn = _neckline(worn, skin, 0.018 if outfit.top == "tee" else 0.04)
    elif outfit.top == "shirt":
        worn = _seams(worn, 0.003, 0.6)
    elif outfit.top != "hoodie":
        worn = _seams(worn, 0.003, 0.4)
    if outfit.top == "dress":
        knots[:, 3:] *= np.linspace(1.0, 1.12 + 0.1 * outfit.leg, len(knots), dtype=np.float32)[:, None]
    loft(figure.canvas, knots, figure.cloth(worn, folds, tall=tall))
    if outfit.top != "dress" and outfit.top != "coat" and outfit.top != "vest":
        _collar(figure, outfit.cloth)


def _collar(figure: Figure, cloth: Cloth) -> None:
    """A stand-up collar, or the lowered hood of a hoodie."""
    bones, top = figure.bones, figure.person.outfit.top
    back = np.array([0, 0.012, -0.035], np.float32)
    if top == "hoodie":
        shade = plain((cloth.colour[0] * 0.85, cloth.colour[1] * 0.85, cloth.colour[2] * 0.85))
        left, right = (bones.neck + np.array([s * 0.034, 0.002, -0.018], np.float32) for s in (1, -1))
        limb(figure.canvas, (left, bones.neck + back), (0.025, 0.036), figure.cloth(shade))
        limb(figure.canvas, (right, bones.neck + back), (0.025, 0.036), figure.cloth(shade))
    elif top in ("shirt", "jacket"):
        y, z = float(bones.neck[1]), float(bones.neck[2])
        rows = [[0, y + 0.022, z - 0.004, 0.033, 0.034], [0, y - 0.012, z, 0.044, 0.044]]
        knots = np.array(rows, np.float32)
        knots[:, 0] = bones.neck[0]
        loft(figure.canvas, knots, figure.cloth(plain(cloth.colour), 0.1), keep=lambda s: np.abs(s.around) > 0.3)


def _arms(figure: Figure) -> None:
    person, bones, outfit = figure.person, figure.bones, figure.person.outfit
    girth = 0.6 + 0.4 * person.build.girth
    upper, elbow, wrist = 0.029 * girth, 0.023 * girth, 0.0155
    wide = outfit.loose + (0.1 if outfit.sleeve >= 1 else 0.2)
    cloth = woven(outfit.cloth) if outfit.sleeve_colour is None else plain(outfit.sleeve_colour)
    for i in (0, 1):
        a, b, c, d = bones.shoulders[i], bones.elbows[i], bones.wrists[i], bones.hands[i]
        if outfit.sleeve < 1:
            limb(figure.canvas, (a, b), (upper, elbow), figure.skin())
            limb(figure.canvas, (b, c), (elbow, wrist), figure.skin())
        if outfit.sleeve > 0:
            finish = figure.cloth(cloth, 0.24)
            reach = min(1.0, outfit.sleeve * 2)
            radii = (upper * (0.9 + 0.2 * wide), (upper + (elbow - upper) * reach) * wide)
            limb(figure.canvas, (a, _mix(a, b, reach)), radii, finish, cut=outfit.sleeve < 0.5, start=0.03)
            if outfit.sleeve > 0.5:
                limb(figure.canvas, (b, c), (elbow * wide, wrist * wide + 0.003), finish, cut=True, start=0.2)
        limb(figure.canvas, (c, _mix(c, d, 0.6)), (wrist * 0.95, 0.0165), figure.skin())
        limb(figure.canvas, (_mix(c, d, 0.6), d), (0.0165, 0.010), figure.skin())
