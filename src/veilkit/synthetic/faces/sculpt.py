"""From an identity's shape to the points of its head at rest."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from veilkit.synthetic.arrays import Floats, Reals, bell, curve, spot, step
from veilkit.synthetic.faces.identity import Shape
from veilkit.synthetic.faces.template import EYE, MOUTH, Template, knots, sample, template

BALL = 12.0  # radius of an eyeball
LID = 1.1  # thickness of a lid
MOUTH_HALF = 24.0  # half the width of the mouth on the template; wider mouths are stretched on top of it


@dataclass(frozen=True, slots=True)
class Head:
    """points: (rows, columns, 3) of the template. eyes: centres (2, 3) of the eyeballs, left of the picture first."""

    points: Floats
    eyes: Floats


def sculpt(shape: Shape) -> Head:
    """The head at rest: skull, then features, then eyelids laid on the eyeballs."""
    mould = template()
    points = _skull(shape, mould)
    a, v, front = np.abs(mould.u), mould.v, step(np.cos(mould.angle), 0.0, 0.35)
    side = np.sign(mould.u)
    _features(shape, points, a, v, front)
    _nose(shape, points, mould.u, v, front)
    _lips(shape, points, mould.u, v, front)
    _move(shape, points, a, v, side, front)
    eyes = _eyes(shape, points, mould)
    return Head(points, eyes)


def _skull(s: Shape, mould: Template) -> Floats:
    """The loft of the rows, with the proportions of `s`."""
    v = mould.v[:, 0]
    height, rise, width, middle, ahead, behind = (each.astype(np.float32) for each in knots(v).T)
    nose, lip = 2.6 * s.nose_length, 1.6 * s.mouth_height
    chin = 2.8 * s.chin_length + 1.5 * s.masculine
    length = 2.0 * s.length
    height = height + curve(
        v,
        (-112, -nose - lip - chin - 1.6 * length),
        (-67, -nose - lip - length),
        (-49, -nose - 0.6 * length),
        (0, 0),
        (20, 0.4 * s.eye_height),
        (62, 2.5 * s.forehead + 0.5 * length),
        (118, 3.5 * s.forehead + length),
    )
    fat, man = s.weight, s.masculine
    width = width + curve(
        v,
        (-200, 3.5 * man + 1.8 * fat),
        (-126, 2.5 * man + 3.2 * fat),
        (-106, 2.2 * s.jaw_width + 2.4 * fat + 1.2 * man),
        (-80, 3.2 * s.jaw_width + 2.6 * fat + 1.5 * man),
        (-40, 1.6 * s.jaw_width + 2.0 * fat + 1.4 * s.width),
        (-10, 1.4 * s.cheekbones + 0.6 * fat + 2.0 * s.width),
        (40, 2.4 * s.width),
        (108, 1.2 * s.width),
        (118, 0),
    )
    ahead = ahead + curve(
        v,
        (-200, 1.5 * man + 1.0 * fat),
        (-126, 2.0 * s.chin_forward + 1.5 * fat),
        (-112, 2.4 * s.chin_forward + 0.5 * man),
        (-95, 2.4 * s.chin_forward + 0.5 * man),
        (-72, 0.8 * s.chin_forward),
        (-40, 0),
        (20, 0.3 * s.forehead_slope),
        (62, -2.2 * s.forehead_slope),
        (96, -4.0 * s.forehead_slope),
        (118, 0),
    )
    rise = rise * (1 + 0.1 * s.jaw_angle)
    sin, cos = np.sin(mould.angle), np.cos(mould.angle)
    power = 2 / curve(v, (-150, 2.0), (-112, 2.0), (-95, 2.12 + 0.1 * s.chin_width), (-60, 2.15), (0, 2.3), (60, 2.3),
                      (118, 2.0))[:, None]  # fmt: skip
    x = width[:, None] * np.sign(sin) * np.abs(sin) ** power
    reach = np.where(cos > 0, ahead[:, None] - middle[:, None], middle[:, None] - behind[:, None])
    z = middle[:, None] + reach * np.sign(cos) * np.abs(cos) ** power
    lift = np.where(cos > 0, (1 - np.maximum(cos, 0)) ** 1.4, 1.0)
    y = height[:, None] + rise[:, None] * lift
    return np.stack([x, y, z], axis=2).astype(np.float32)


def _features(s: Shape, points: Floats, a: Floats, v: Floats, front: Floats) -> None:
    """Brow ridge, sockets, cheeks, folds and chin."""
    ridge = 2.6 + 1.0 * s.brow_ridge + 0.6 * s.masculine
    z = ridge * bell(v - 17 + 0.004 * np.square(a - 30), 5.5) * (1 - 0.45 * bell(a, 7)) * step(a, 58, 44)
    z -= (5.0 + 0.9 * s.eye_depth) * spot(a, v, (29, 3), (13, 8.5))
    z -= 4.5 * spot(a, v, (15.5, 2), (5.0, 8))
    cheek = -25 + 2.5 * s.cheek_height
    z += (4.2 + 1.3 * s.cheekbones) * spot(a, v, (43, cheek), (12, 11))
    z += (1.2 + 1.1 * s.weight) * spot(a, v, (36, -48), (15, 14))
    z -= (1.6 - 1.3 * s.weight + 0.6 * s.cheekbones) * spot(a, v, (46, -60), (10, 14))
    z += (3.0 + 0.9 * s.mouth_forward) * spot(a, v, (0, -62), (20, 13))
    z -= 2.6 * spot(a, v, (0, -84), (15, 4.5))
    z += (3.4 + 0.6 * s.masculine) * spot(a, v, (0, -99), (11 + 1.5 * s.chin_width, 8.5))
    z += max(0.0, 0.9 * s.chin_width) * spot(a, v, (12, -100), (6, 7))
    z -= max(0.0, 0.8 * s.chin_cleft - 0.4) * spot(a, v, (0, -100), (2.2, 6))
    fold = 0.9 + 0.35 * s.age
    line = 17 + (-40 - v) * 0.55
    z -= max(0.1, fold) * bell(a - line, 2.6) * step(v, -70, -58) * step(v, -34, -44)
    z += 0.7 * bell(a - line - 6, 4) * step(v, -70, -58) * step(v, -34, -44)
    trough = -9 - 0.32 * (a - 12)
    z -= max(0.1, 0.8 + 0.3 * s.age) * bell(v - trough, 2.4) * step(a, 11, 16) * step(a, 40, 28)
    points[..., 2] += front * z
    side = np.sign(points[..., 0])
    points[..., 0] -= side * (2.0 - 0.8 * s.weight) * spot(a, v, (66, 22), (14, 14))
    points[..., 0] += side * front * 1.5 * spot(a, v, (54, cheek), (12, 10))


def _nose(s: Shape, points: Floats, u: Floats, v: Floats, front: Floats) -> None:
    """Bridge, tip and wings; the tip may point up or down."""
    a = np.abs(u)
    high = 1 + 0.085 * s.nose_height
    tip = 23.0 * high + 0.8 * s.nose_tip
    root = 2.6 + 0.9 * s.nose_bridge
    hump = 1.5 * s.nose_hump
    tall = curve(
        v,
        (-54, 0.0),
        (-50.5, 3.0),
        (-48, 8.5 * high),
        (-45.5, 16.5 * high),
        (-42.5, tip - 1.6),
        (-38.5, tip),
        (-33, tip - 2.6),
        (-25, 16.0 * high + 0.5 * hump),
        (-16, 11.0 * high + hump),
        (-6, 6.4 * high + 0.6 * s.nose_bridge + 0.5 * hump),
        (3, root + 0.5),
        (10, 0.8),
        (17, 0.0),
    )
    wide = 1 + 0.10 * s.nose_width
    half = curve(v, (-52, 5.5), (-46, 6.6 * wide), (-39, 8.0 * (wide + 0.06 * s.nose_tip)), (-29, 7.8), (-14, 7.4),
                 (0, 7.6), (12, 10))  # fmt: skip
    half = half * (1 + 0.05 * s.nose_width + 0.05 * s.nose_bridge)
    z = tall * np.exp(-0.75 * np.abs(u / half) ** curve(v, (-44, 2.1), (-34, 1.9), (-10, 1.6)))
    z += (8.6 + 0.5 * s.nose_width) * spot(a, v, (12.2 * wide, -42.2), (3.6, 4.0))
    z += 1.8 * spot(a, v, (0, -38.5), (5.5 + 0.8 * s.nose_tip, 4.6))
    z -= 2.6 * spot(a, v, (7.0 * wide, -46.8), (2.6, 1.6))
    z -= 1.1 * spot(a, v, (8.6 * wide, -39.5), (1.7, 4.0))
    z -= 1.8 * spot(a, v, (18.0 * wide, -41), (1.9, 5))
    z -= 1.0 * spot(a, v, (0, -55.5), (2.4, 4)) - 0.5 * spot(a, v, (4.8, -56), (1.8, 4))
    points[..., 2] += front * z
    flare = front * spot(a, v, (12, -43), (5, 6))
    points[..., 0] += np.sign(u) * flare * (1.2 + 1.1 * s.nose_width)
    points[..., 1] += front * (0.4 + 1.5 * s.nose_tilt) * spot(a, v, (0, -42), (9, 5.5))


def lip_edges(s: Shape, u: Floats) -> tuple[Floats, Floats]:
    """v of the upper and of the lower edge of the lips' red at u; both meet the mouth's line at its corners."""
    q = np.clip(np.abs(u) / MOUTH_HALF, 0, 1)
    upper = max(2.4, 6.3 + 1.15 * s.upper_lip - 0.4 * s.age)
    lower = max(3.6, 8.4 + 1.2 * s.lower_lip - 0.4 * s.age)
    bow = 1.1 + 0.35 * s.lip_bow
    top = upper * np.maximum(1 - q**1.7, 0) ** 0.9 - bow * bell(u, 2.6) + 0.25 * bow * bell(np.abs(u) - 5.5, 2.5)
    bottom = lower * np.maximum(1 - q**2.3, 0) ** 0.95
    return (MOUTH + np.maximum(top, 0)).astype(np.float32), (MOUTH - bottom).astype(np.float32)


def _lips(s: Shape, points: Floats, u: Floats, v: Floats, front: Floats) -> None:
    top, bottom = lip_edges(s, u)
    up = np.clip((v - MOUTH) / np.maximum(top - MOUTH, 0.5), 0, 3)
    down = np.clip((MOUTH - v) / np.maximum(MOUTH - bottom, 0.5), 0, 3)
    inside = step(np.abs(u), 26, 16)
    full_up, full_down = 2.9 + 0.45 * s.upper_lip, 3.6 + 0.5 * s.lower_lip
    z = inside * np.where(v > MOUTH, full_up * _roll(up), full_down * _roll(down))
    z -= 2.2 * bell(v - MOUTH, 1.1) * step(np.abs(u), 27, 20)
    z -= 2.2 * spot(np.abs(u), v, (26, MOUTH - 0.5), (3.6, 4))
    points[..., 2] += front * z
    points[..., 1] += front * (0.9 * s.lip_corners) * spot(np.abs(u), v, (25, MOUTH), (8, 7))


def _roll(t: Reals) -> Floats:
    """The profile of a lip from the line (0) over its edge (1): full in its middle, a small step at the edge."""
    return np.asarray(bell(t - 0.45, 0.42) * step(t, 1.9, 0.9), np.float32)


def _move(s: Shape, points: Floats, a: Floats, v: Floats, side: Floats, front: Floats) -> None:
    """Shift whole features: eyes apart or together, brows up, mouth wider."""
    eye = spot(a, v, (EYE[0], 6), (20, 17))
    points[..., 0] += front * side * 1.5 * s.eye_distance * eye
    points[..., 1] += front * 1.3 * s.eye_height * spot(a, v, (25, 0), (32, 20))
    apart = (a - EYE[0]) * spot(a, v, EYE, (16, 13))
    points[..., 0] += front * side * 0.05 * s.eye_size * apart
    brow = spot(a, v, (32, 21), (22, 7))
    points[..., 1] += front * (1.3 * s.brow_height - 0.5 * s.brow_ridge) * brow
    points[..., 1] += front * 1.0 * s.brow_arch * spot(a, v, (40, 22), (10, 7))
    points[..., 1] += front * 0.9 * s.brow_tilt * (spot(a, v, (46, 21), (9, 8)) - spot(a, v, (16, 21), (8, 8)))
    mouth = step(a, 0, 24) * bell(v - MOUTH, 11) * step(a, 56, 26)
    points[..., 0] += front * side * (2.0 * s.mouth_width + 1.6) * mouth


def _eyes(s: Shape, points: Floats, mould: Template) -> Floats:
    """Place the eyeballs and lay the lids over them; returns the centres."""
    centres = []
    for sign in (-1, 1):
        at = sample(points, *mould.at(np.array([sign * EYE[0]], np.float32), np.array([EYE[1]], np.float32)))[0]
        centre = at - np.array([0, 0, BALL - 1.2 + 0.25 * s.eye_depth], np.float32)
        x, y = points[..., 0] - centre[0], points[..., 1] - centre[1]
        far = np.square(x / 21) + np.square((y - 0.5) / 13)
        near = (far < 1.6) & (mould.angle * sign > 0) & (np.cos(mould.angle) > 0)
        x, y, far = x[near], y[near], np.sqrt(far[near])
        out = sign * x
        round_ = np.sqrt(np.maximum(1 - np.square(x / 18.2) - np.square(y / (BALL + 1.6)), 0.02))
        laid = centre[2] + (BALL + LID) * round_ - 0.13 * out - 0.8 * step(out, -9, -16)
        weight = step(far, 1.05, 0.62)
        points[..., 2][near] += weight * (laid - points[..., 2][near])
        centres.append(centre)
    return np.array(centres, np.float32)
