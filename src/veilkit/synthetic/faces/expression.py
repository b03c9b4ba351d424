"""What a face does: action units, each from 0 to 1, the emotions that combine them, and what they move.

The units follow the Facial Action Coding System in small; the number of the nearest unit stands beside each.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, fields

import numpy as np

from veilkit.errors import ConfigError
from veilkit.synthetic.arrays import Floats, bell, spot, step
from veilkit.synthetic.faces.identity import Shape
from veilkit.synthetic.faces.sculpt import Head
from veilkit.synthetic.faces.template import EYE, MOUTH, template


@dataclass(frozen=True, slots=True)
class Actions:
    """Strength of each action unit."""

    inner_brow_raise: float = 0.0  # 1
    outer_brow_raise: float = 0.0  # 2
    brow_lower: float = 0.0  # 4
    lid_raise: float = 0.0  # 5
    cheek_raise: float = 0.0  # 6
    lid_tighten: float = 0.0  # 7
    nose_wrinkle: float = 0.0  # 9
    upper_lip_raise: float = 0.0  # 10
    corner_pull: float = 0.0  # 12
    corner_drop: float = 0.0  # 15
    chin_raise: float = 0.0  # 17
    lip_stretch: float = 0.0  # 20
    lip_press: float = 0.0  # 24
    lips_part: float = 0.0  # 25
    jaw_drop: float = 0.0  # 26
    lid_close: float = 0.0  # 43

    def scaled(self, intensity: float) -> Actions:
        """All units times `intensity`."""
        return Actions(**{each.name: intensity * getattr(self, each.name) for each in fields(self)})


EMOTIONS: dict[str, Actions] = {
    "neutral": Actions(),
    "happy": Actions(cheek_raise=0.8, corner_pull=1.0, lips_part=0.5, lid_tighten=0.25, jaw_drop=0.08),
    "sad": Actions(inner_brow_raise=1.0, brow_lower=0.35, corner_drop=1.0, chin_raise=0.5, lid_close=0.12),
    "surprised": Actions(inner_brow_raise=1.0, outer_brow_raise=1.0, lid_raise=1.0, lips_part=0.4, jaw_drop=0.8),
    "angry": Actions(brow_lower=1.0, lid_raise=0.25, lid_tighten=0.6, lip_press=1.0, nose_wrinkle=0.25),
    "disgusted": Actions(
        brow_lower=0.55, nose_wrinkle=1.0, upper_lip_raise=0.9, corner_drop=0.4, lid_tighten=0.6, lips_part=0.15
    ),
    "fearful": Actions(
        inner_brow_raise=1.0,
        outer_brow_raise=0.35,
        brow_lower=0.4,
        lid_raise=0.85,
        lip_stretch=1.0,
        lips_part=0.5,
        jaw_drop=0.3,
    ),
}
ACTIONS = tuple(each.name for each in fields(Actions))


@dataclass(frozen=True, slots=True)
class Expression:
    """label: one of EMOTIONS. intensity: from 0 to 1. actions: what is drawn."""

    label: str
    intensity: float
    actions: Actions


def expression(label: str, intensity: float = 1.0) -> Expression:
    """The emotion `label` at an intensity, without personal variation."""
    if label not in EMOTIONS:
        raise ConfigError(f"an expression must be one of {', '.join(EMOTIONS)}, but got {label!r}")
    if not 0 <= intensity <= 1:
        raise ConfigError(f"intensity must be between 0 and 1, but got {intensity}")
    return Expression(label, intensity, EMOTIONS[label].scaled(intensity))


def draw_expression(rng: np.random.Generator) -> Expression:
    """Any emotion, as likely as any other, at 0.6 to 1 of its strength; no two smiles pull the same units alike."""
    label = tuple(EMOTIONS)[int(rng.integers(len(EMOTIONS)))]
    intensity = 0.0 if label == "neutral" else float(rng.uniform(0.6, 1.0))
    pure, values = EMOTIONS[label], {}
    for name in ACTIONS:
        strength = float(getattr(pure, name)) * intensity
        noise = float(rng.normal(0, 0.12)) * strength + abs(float(rng.normal(0, 0.03)))
        values[name] = float(np.clip(strength + noise, 0, 1))
    if label == "happy" and rng.random() < 0.35:
        values["lips_part"] = 0.0
        values["jaw_drop"] = 0.0
    return Expression(label, intensity, Actions(**values))


_HINGE = np.array([0.0, -22.0, -68.0], np.float32)  # of the jaw
_WIDEST = math.radians(24)


def jaw_turn(actions: Actions) -> float:
    """Radians that the jaw is open."""
    return _WIDEST * actions.jaw_drop


def move(head: Head, shape: Shape, actions: Actions) -> Floats:
    """The head's points (rows, columns, 3) under `actions`."""
    mould = template()
    points = head.points.copy()
    u, v, side = mould.u, mould.v, np.sign(mould.u)
    a, front = np.abs(u), step(np.cos(mould.angle), 0.0, 0.35)
    x, y, z = np.zeros_like(a), np.zeros_like(a), np.zeros_like(a)
    _brows(actions, a, v, x, y, z)
    _middle(actions, a, v, x, y, z)
    lower = _lower_lip(a, v)
    _mouth(actions, a, v, x, y, z)
    points[..., 0] += front * side * x
    points[..., 1] += front * y
    points[..., 2] += front * z
    _drop(points, jaw_turn(actions), lower, v)
    return points


def _brows(f: Actions, a: Floats, v: Floats, x: Floats, y: Floats, z: Floats) -> None:
    inner, outer = spot(a, v, (14, 23), (11, 12)), spot(a, v, (42, 23), (13, 12))
    y += 6.5 * f.inner_brow_raise * inner + 6.5 * f.outer_brow_raise * outer
    y += 2.5 * max(f.inner_brow_raise, f.outer_brow_raise) * spot(a, v, (28, 26), (16, 13))
    y -= f.brow_lower * (6.0 * inner + 3.0 * outer + 3.0 * spot(a, v, (27, 20), (10, 9)))
    x -= f.brow_lower * 3.2 * inner * step(a, 0, 8)
    z += f.brow_lower * 1.6 * spot(a, v, (12, 17), (7, 6))
    z -= f.brow_lower * 1.4 * bell(a - 5, 1.6) * bell(v - 20, 6)


def _middle(f: Actions, a: Floats, v: Floats, x: Floats, y: Floats, z: Floats) -> None:
    cheek = spot(a, v, (38, -26), (14, 12))
    y += 4.5 * f.cheek_raise * cheek + 2.0 * f.lid_tighten * spot(a, v, (32, -10), (15, 6))
    z += 3.2 * f.cheek_raise * cheek
    wing = spot(a, v, (13, -42), (7, 8))
    y += 3.8 * f.nose_wrinkle * wing + 2.0 * f.nose_wrinkle * spot(a, v, (20, -20), (10, 12))
    x += 1.2 * f.nose_wrinkle * wing
    z -= 1.1 * f.nose_wrinkle * (bell(v + 2, 1.6) + bell(v + 8, 1.6)) * spot(a, v, (5, -4), (5, 12))
    x += 1.3 * f.corner_pull * wing


def _mouth(f: Actions, a: Floats, v: Floats, x: Floats, y: Floats, z: Floats) -> None:
    """Lips and what they pull along."""
    corner = spot(a, v, (26, MOUTH), (10, 11))
    band = bell(v - MOUTH, 12) * step(a, 2, 26) * step(a, 62, 28)
    x += 6.0 * f.corner_pull * band + 4.5 * f.lip_stretch * band - 2.0 * f.lip_press * band
    y += (8.0 * f.corner_pull - 6.5 * f.corner_drop - 2.0 * f.lip_stretch) * corner
    z -= (4.5 * f.corner_pull + 2.0 * f.lip_stretch) * spot(a, v, (27, MOUTH), (10, 12))
    z += 2.4 * f.corner_pull * spot(a, v, (38, -46), (9, 10))
    fold = bell(a - (20 + (-40 - v) * 0.55), 2.4) * step(v, -72, -60) * step(v, -36, -44)
    z -= (2.4 * f.corner_pull + 1.6 * f.upper_lip_raise + 1.4 * f.nose_wrinkle) * fold
    sharp = step(MOUTH - v, -0.45, 0.45)
    taper = np.sqrt(np.maximum(1 - np.square(a / 23.5), 0))
    upper_lip = bell(v - MOUTH - 4, 7) * taper * (1 - sharp)
    lower_lip = bell(v - MOUTH + 5, 7) * taper * sharp
    y += (4.8 * f.upper_lip_raise + 2.6 * f.lips_part + 1.4 * f.nose_wrinkle + 1.5 * f.jaw_drop) * upper_lip
    y -= (3.2 * f.lips_part) * lower_lip
    y += f.corner_pull * (1.2 * upper_lip - 0.4 * lower_lip)
    y += 3.0 * f.chin_raise * spot(a, v, (0, -84), (16, 14))
    z += 1.8 * f.chin_raise * spot(a, v, (0, -76), (14, 6))
    # Pressed lips turn their red inwards.
    y += f.lip_press * (1.6 * lower_lip - 1.6 * upper_lip) * np.minimum(np.abs(v - MOUTH) / 5, 1)
    z -= 2.4 * f.lip_press * bell(v - MOUTH, 6) * step(a, 26, 14)


def _lower_lip(a: Floats, v: Floats) -> Floats:
    """1 below the line of the mouth, 0 above it; beyond the corners the step turns into a slope."""
    taper = np.sqrt(np.maximum(1 - np.square(a / 23.5), 0))
    slope = step((MOUTH - v) / (13 + 0.6 * np.maximum(a - 23.0, 0)), -1.0, 1.0)
    return np.asarray(taper * step(MOUTH - v, -0.45, 0.45) + (1 - taper) * slope, np.float32)


def _drop(points: Floats, turn: float, lower: Floats, v: Floats) -> None:
    """Turn the jaw about its hinge; the throat follows less and less."""
    if turn <= 0:
        return
    weight = (lower * step(v, -170, -116))[..., None] * step(points[..., 2:], -95.0, -35.0)
    sin, cos = math.sin(turn), math.cos(turn)
    from_hinge = points - _HINGE
    turned = from_hinge.copy()
    turned[..., 1] = cos * from_hinge[..., 1] - sin * from_hinge[..., 2]
    turned[..., 2] = sin * from_hinge[..., 1] + cos * from_hinge[..., 2]
    points += weight * (turned - from_hinge)
    # An open mouth is narrower.
    points[..., 0] *= 1 - 0.35 * turn * bell(v - MOUTH, 14) * step(np.abs(points[..., 0]), 60, 20)


@dataclass(frozen=True, slots=True)
class Opening:
    """The slit of an eye on the template: half its length, height above and below its middle, rise of its end."""

    half: float
    upper: float
    lower: float
    tilt: float

    def edges(self, u: Floats) -> tuple[Floats, Floats]:
        """v of the upper and lower lid at |u|; equal outside."""
        q = np.clip((np.abs(u) - EYE[0]) / self.half, -1, 1)
        line = EYE[1] + self.tilt * q - 0.5
        top = line + self.upper * np.maximum(1 - np.abs(q) ** 2.2, 0) ** 0.75 * (1 - 0.10 * q)
        bottom = line - self.lower * np.maximum(1 - np.abs(q) ** 2.2, 0) ** 0.9 * (1 + 0.16 * q)
        return np.maximum(top, bottom).astype(np.float32), bottom.astype(np.float32)


def eye_opening(shape: Shape, actions: Actions, gaze_pitch: float) -> Opening:
    """The slit of both eyes; the upper lid follows the gaze (pitch in degrees, positive up)."""
    size = 1 + 0.055 * shape.eye_size
    upper = (5.3 + 0.55 * shape.eye_opening) * size
    lower = (4.6 + 0.2 * shape.eye_opening) * size
    upper += 1.9 * actions.lid_raise + 0.07 * min(gaze_pitch, 12.0) - 0.9 * actions.lid_tighten
    upper -= 0.7 * actions.brow_lower + 0.4 * max(0.0, 0.5 * shape.age)
    lower += 0.5 * actions.lid_raise - 1.7 * actions.lid_tighten - 1.5 * actions.cheek_raise - 0.02 * gaze_pitch
    shut = actions.lid_close
    upper = upper + (-lower - upper) * shut
    return Opening(14.6 * size, max(upper, -lower), max(lower, 0.8), 1.3 + 1.1 * shape.eye_tilt)
