"""The colours of a face: skin, lips, brows, lashes, beard, hairline and the lines that an expression draws."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from veilkit.synthetic.arrays import Floats, bell, curve, spot, step
from veilkit.synthetic.colours import linear
from veilkit.synthetic.faces.expression import Actions, Opening
from veilkit.synthetic.faces.identity import Coiffure, Face, Shape
from veilkit.synthetic.faces.raster import Fragments, Paint, look_up
from veilkit.synthetic.faces.sculpt import lip_edges
from veilkit.synthetic.faces.template import EYE, MOUTH

MOUTH_END = 22.8  # |u| to which the lips can part


def brow_line(a: Floats) -> Floats:
    """v of the middle of a brow at |u|."""
    return curve(a, (8, 17.5), (14, 19.5), (26, 22.3), (37, 23.8), (46, 21.5), (54, 16.5))


class Skin:
    """Paints the head's mesh; `places` (V, 3) holds u, v and the angle of each vertex."""

    def __init__(self, face: Face, actions: Actions, opening: Opening, places: Floats) -> None:
        self.face, self.actions, self.opening, self.places = face, actions, opening, places
        self.eye_holes: list[tuple[Fragments, Floats]] = []
        self.mouth_hole: tuple[Fragments, Floats] | None = None

    def keep(self, found: Fragments) -> NDArray[np.bool_]:
        """False in the slits of eyes and mouth, which are remembered for what lies behind."""
        place = found.values(self.places)
        u, v, a = place[:, 0], place[:, 1], np.abs(place[:, 0])
        front = np.abs(place[:, 2]) < 1.3
        eye = np.zeros(len(u), bool)
        near = np.flatnonzero(front & (np.abs(a - EYE[0]) < self.opening.half) & (np.abs(v - EYE[1]) < 12))
        top, bottom = self.opening.edges(u[near])
        eye[near] = (v[near] < top) & (v[near] > bottom)
        mouth = front & (np.abs(v - MOUTH) < 0.5) & (a < MOUTH_END)
        for sign in (-1, 1):
            hole = np.flatnonzero(eye & (u * sign > 0))
            self.eye_holes.append((found.pick(hole), place[hole]))
        hole = np.flatnonzero(mouth)
        self.mouth_hole = found.pick(hole), place[hole]
        return np.asarray(~(eye | mouth))

    def paint(self, found: Fragments) -> Paint:
        """Skin with everything on it."""
        place = found.values(self.places)
        u, v, angle = place[:, 0], place[:, 1], place[:, 2]
        a, seed = np.abs(u), self.face.texture
        front = step(np.cos(angle), 0.0, 0.3)
        along = np.where(np.abs(angle) < 1.2, u, np.sign(u) * (20 + 42 * np.abs(angle)))
        soft, fine = look_up("soft", 2.2 * v, 2.2 * along, seed), look_up("fine", 5 * v, 5 * along, seed)
        colour = self._skin(a, v, front, soft, fine)
        gloss = (0.35 + 0.65 * spot(a, v, (0, -20), (30, 40))) * self.face.complexion.gloss * (1 + 0.3 * soft)
        self._freckles(colour, u, v, front, along)
        self._lines(colour, a, v, front)
        lips = self._lips(colour, u, v, front, soft)
        gloss = gloss * (1 - lips) + lips * (0.8 + 0.6 * self.face.attributes.make_up)
        hairy = np.maximum(self._beard(colour, u, a, v, angle, front), self._brows(colour, a, v, front, u))
        hairy = np.maximum(hairy, self._scalp(colour, v, angle))
        self._lids(colour, a, v, front)
        nostril = front * spot(a, v, (7.0 * (1 + 0.1 * self.face.shape.nose_width), -46.9), (2.6, 1.3))
        colour *= 1 - 0.86 * np.minimum(nostril * 1.4, 1)[:, None]
        rough = 0.03 + 0.25 * hairy
        normal = np.stack([rough * fine, rough * soft * 0.6, np.zeros_like(fine)], axis=1)
        return Paint(np.clip(colour, 0.002, 1), gloss * (1 - 0.8 * hairy), 1 - 0.7 * hairy, normal)

    def _skin(self, a: Floats, v: Floats, front: Floats, soft: Floats, fine: Floats) -> Floats:
        c = self.face.complexion
        red = (
            0.9 * spot(a, v, (38, -32), (13, 12))
            + 0.8 * spot(a, v, (0, -40), (10, 7))
            + 0.3 * spot(a, v, (0, -98), (14, 9))
        )
        red = c.ruddy * front * red + 0.18 * soft * c.ruddy
        dull = c.circles * front * spot(a, v, (27, -9.5), (10, 3.8)) + 0.35 * front * spot(a, v, (29, 7), (12, 4))
        dull = dull + 0.5 * front * spot(a, v, (14.5, 1), (4, 6))
        tint = 1 + red[:, None] * np.array([0.10, -0.17, -0.15], np.float32)
        tint -= dull[:, None] * np.array([0.20, 0.30, 0.24], np.float32)
        tint *= (1 + 0.035 * soft + 0.025 * fine)[:, None]
        return np.asarray(linear(c.skin) * np.maximum(tint, 0.2), np.float32)

    def _freckles(self, colour: Floats, u: Floats, v: Floats, front: Floats, along: Floats) -> None:
        c = self.face.complexion
        if c.freckles:
            spots = step(look_up("curls", 6 * v, 6 * along, self.face.texture + 77), 1.25, 2.0)
            where = np.maximum(spot(np.abs(u), v, (26, -22), (20, 14)), 0.35 * bell(v - 10, 40)) * front
            colour *= 1 - (c.freckles * 0.5 * spots * where)[:, None] * np.array([0.5, 0.8, 1.0], np.float32)
        for mole_u, mole_v, radius in c.moles:
            dark = front * step(np.hypot(u - mole_u, v - mole_v), radius * 1.5, radius * 0.6)
            colour *= 1 - dark[:, None] * np.array([0.55, 0.7, 0.75], np.float32)

    def _lines(self, colour: Floats, a: Floats, v: Floats, front: Floats) -> None:
        """Wrinkles of age and of the moment."""
        f, age = self.actions, max(0.0, self.face.shape.age)
        raised = max(f.inner_brow_raise, f.outer_brow_raise)
        wave = 1.5 * np.cos(a * 0.09)
        forehead = sum((bell(v - line - wave, 1.0) for line in (34.0, 42.0, 50.0)), np.zeros_like(a))
        dark = (0.45 * raised + 0.09 * age) * forehead * step(a, 46, 26)
        dark += (0.5 * f.brow_lower + 0.08 * age) * bell(a - 5 - 0.12 * (v - 18), 1.0) * bell(v - 20, 5)
        fold = bell(a - (19 + (-40 - v) * 0.55), 1.5) * step(v, -70, -60) * step(v, -36, -44)
        dark += (0.12 + 0.30 * f.corner_pull + 0.3 * f.nose_wrinkle + 0.15 * f.upper_lip_raise + 0.09 * age) * fold
        crow = bell(np.sin((v + 1) * 0.9 + 0.15 * a), 0.35) * spot(a, v, (52, -2), (4, 8))
        dark += (0.3 * f.cheek_raise + 0.10 * age) * crow
        dark += (
            (0.4 * f.lid_tighten + 0.25 * f.cheek_raise + 0.10 * age)
            * bell(v + 9.5 + 0.012 * (a - 30) ** 2, 1.1)
            * step(a, 14, 22)
            * step(a, 46, 38)
        )
        dark += 0.5 * f.nose_wrinkle * (bell(v + 2, 0.9) + bell(v + 7, 0.9)) * step(a, 10, 4)
        dark += 0.4 * f.chin_raise * spot(a, v, (0, -86), (12, 1.6))
        colour *= 1 - (front * np.minimum(dark, 0.7))[:, None] * np.array([0.55, 0.8, 0.85], np.float32)

    def _lips(self, colour: Floats, u: Floats, v: Floats, front: Floats, soft: Floats) -> Floats:
        top, bottom = lip_edges(self.face.shape, u)
        inside = (
            np.minimum(step(top - v, -0.7, 0.9), step(v - bottom, -0.9, 1.1)) * step(np.abs(u), 25.0, 22.0) * front
        )
        c = self.face.complexion
        shade = np.where(v > MOUTH, 0.86, 1.06) + 0.05 * soft + 0.06 * look_up("strands", 9 * v, 7 * u, 5)
        made_up = linear(c.lips) * (1 + self.face.attributes.make_up * np.array([0.1, -0.38, -0.3], np.float32))
        strength = (0.82 + 0.18 * self.face.attributes.make_up) * inside
        colour += strength[:, None] * (made_up * shade[:, None] - colour)
        line = bell(v - MOUTH, 0.9) * step(np.abs(u), 27, 23) * front
        colour *= 1 - 0.55 * line[:, None]
        return np.asarray(inside, np.float32)

    def _brows(self, colour: Floats, a: Floats, v: Floats, front: Floats, u: Floats) -> Floats:
        s = self.face.shape
        thick = curve(a, (8, 1.8), (13, 3.7), (26, 3.8), (38, 3.3), (47, 2.2), (54, 1.0)) * (
            1 + 0.17 * s.brow_thickness
        )
        end = 51.5 + 1.0 * s.brow_length
        fibre = look_up("strands", 3.0 * u * np.sign(u) + 2.2 * v, 7 * v - 2.0 * a, self.face.texture)
        inside = step(np.abs(v - brow_line(a)) / np.maximum(thick, 0.4), 1.4, 0.35)
        inside = inside * step(a, 9 - 0.6 * s.brow_thickness, 15) * step(a, end + 1.5, end - 3) * front
        cover = np.clip(inside * (0.80 + 0.08 * s.brow_thickness + 0.2 * fibre), 0, 0.96)
        colour += cover[:, None] * (linear(self.face.complexion.brows) * 0.8 - colour)
        return np.asarray(cover, np.float32)

    def _lids(self, colour: Floats, a: Floats, v: Floats, front: Floats) -> None:
        """Lashes along the edges, the crease above, the moist rim below."""
        near = np.flatnonzero((np.abs(a - EYE[0]) < 20) & (np.abs(v - EYE[1]) < 14) & (front > 0))
        a, v = a[near], v[near]
        top, bottom = self.opening.edges(a)
        inside = step(np.abs(a - EYE[0]), self.opening.half + 1.5, self.opening.half - 2)
        make_up = self.face.attributes.make_up
        outer = 0.6 + 0.4 * step(a, EYE[0] - 10, EYE[0] + 8)
        lash = bell(np.maximum(v - top, 0), 0.75 + 0.45 * make_up) * inside * outer * (v > top - 1)
        low = bell(np.minimum(v - bottom, 0), 0.7) * inside * (v < bottom + 1)
        crease = bell(v - top - 3.4 + 0.5 * self.face.shape.eye_depth, 0.85) * inside
        part = colour[near]
        part *= 1 - (0.42 * crease)[:, None] * np.array([0.7, 0.9, 0.95], np.float32)
        part *= 1 - (0.85 * (0.75 + 0.25 * make_up) * lash)[:, None]
        part *= 1 - ((0.25 + 0.25 * make_up) * low)[:, None]
        colour[near] = part

    def _beard(self, colour: Floats, u: Floats, a: Floats, v: Floats, angle: Floats, front: Floats) -> Floats:
        kind = self.face.attributes.beard
        if kind == "none":
            return np.zeros_like(a)
        cover = beard_area(self.face.shape, kind, u, a, v, angle)
        top, bottom = lip_edges(self.face.shape, u)
        cover = cover * (1 - step(top + 0.6 - v, 0, 1.2) * step(v - bottom + 0.6, 0, 1.2) * step(a, 25, 23))
        dense = self.face.attributes.beard_density
        strong = 0.22 + 0.2 * dense if kind == "stubble" else 0.6 + 0.35 * dense
        fibre = 0.6 * look_up("strands", 4.0 * v, 6 * u, self.face.texture) + look_up("fine", 4 * v, 4 * u, 3)
        cover = np.clip(cover * strong * (1 + 0.22 * fibre), 0, 0.95)
        colour += cover[:, None] * (linear(self.face.hair.colour) * 0.8 - colour)
        return np.asarray(cover if kind != "stubble" else 0.3 * cover, np.float32)

    def _scalp(self, colour: Floats, v: Floats, angle: Floats) -> Floats:
        """The skin under the hair has its colour."""
        hair = self.face.hair
        if hair.style == "bald":
            return np.zeros_like(v)
        edge = v - hairline(hair, angle)
        noise = look_up("fine", 5 * v, 150 * angle, self.face.texture)
        cover = step(edge + 1.8 * noise, -3.0, 5.0) * (v > -90)
        cover = cover * (0.62 + 0.1 * noise if hair.style == "buzz" else 0.9)
        cover = np.clip(cover, 0, 0.95)
        colour += cover[:, None] * (linear(hair.colour) * 0.85 - colour)
        return np.asarray(cover, np.float32)


def beard_area(s: Shape, kind: str, u: Floats, a: Floats, v: Floats, angle: Floats) -> Floats:
    """Where a beard of `kind` grows, from 0 to 1."""
    slope = v + 0.012 * np.square(a)
    moustache = step(slope, -50.5, -55) * step(a, 31, 22) * step(v, -72, -65) * (1 - 0.35 * bell(u, 1.8))
    patch = spot(a, v, (0, -80), (5, 4)) + step(np.hypot(a / 19, (v + 103) / 17), 1.2, 0.7)
    round_mouth = spot(a, v, (28, -72), (3.5, 9))
    border = curve(a, (0, -82), (14, -80), (25, -70), (32, -60), (46, -48), (58, -28), (66, 0))
    border = np.where(np.abs(angle) > 1.3, 6.0, border)
    cheeks = step(v - border, 6, -6) * step(np.abs(angle), 1.62, 1.45)
    cheeks = cheeks * step(v, -126, -112)
    return np.asarray(
        {
            "moustache": moustache,
            "goatee": np.clip(moustache + patch + round_mouth, 0, 1),
            "full": np.clip(moustache + cheeks + 0.6 * patch, 0, 1),
            "stubble": np.clip(0.9 * moustache + cheeks + 0.5 * patch, 0, 1),
        }[kind],
        np.float32,
    )


def hairline(hair: Coiffure, angle: Floats) -> Floats:
    """v above which hair grows at an angle (radians) round the head."""
    turn = np.abs(angle) * np.float32(180 / math.pi)
    front, back = 63 + hair.line, 16 * hair.recede
    return curve(
        turn,
        (0, front + 0.5 * back),
        (24, front + 1 + 0.8 * back),
        (40, front + 1 + 1.2 * back),
        (52, 50 + 0.5 * hair.line + 0.7 * back),
        (62, 34),
        (70, 18),
        (75, -4),
        (78, -14),
        (82, -14),
        (86, 12),
        (96, 26),
        (108, 20),
        (120, -20),
        (135, -58),
        (180, -72),
    )
