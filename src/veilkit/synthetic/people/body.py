"""The skeleton: where the joints of a build are in a pose. Body frame and unit as in `view`."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from veilkit.synthetic.arrays import Floats
from veilkit.synthetic.people.identity import Build


@dataclass(frozen=True, slots=True)
class Pose:
    """Joint angles in radians, right-hand side of the picture first. Flexion is forward; elbows and knees bend."""

    hips: tuple[float, float]
    knees: tuple[float, float]
    shoulders: tuple[float, float]
    spread: tuple[float, float]
    elbows: tuple[float, float]
    inward: tuple[float, float]
    lean: float
    sway: float
    look: float


def draw_pose(rng: np.random.Generator, phone: bool) -> Pose:
    """A walker at some phase of the gait, or somebody who stands; `phone` lifts one hand."""
    walking = rng.random() < 0.75
    phase = float(rng.uniform(0, 2 * math.pi))
    stride = float(rng.uniform(0.28, 0.52)) if walking else float(rng.uniform(0.0, 0.08))
    swing = math.sin(phase)
    lifts = max(0.0, math.cos(phase)), max(0.0, -math.cos(phase))
    bend = 0.95 if walking else 0.05
    arm = float(rng.uniform(0.5, 1.1)) * stride
    elbow = float(rng.uniform(0.12, 0.5))
    shoulders = [-arm * swing, arm * swing]
    elbows = [elbow + max(0.0, -swing) * arm, elbow + max(0.0, swing) * arm]
    inward = [0.0, 0.0]
    if phone:
        hand = int(rng.integers(2))
        shoulders[hand], elbows[hand], inward[hand] = 0.35, float(rng.uniform(1.5, 2.2)), 0.45
    elif not walking and rng.random() < 0.35:
        shoulders, elbows, inward = [-0.25, -0.25], [0.75, 0.75], [0.35, 0.35]
    return Pose(
        hips=(stride * swing + 0.06, -stride * swing + 0.06),
        knees=(0.1 + bend * lifts[0] * min(1.0, 2.2 * stride), 0.1 + bend * lifts[1] * min(1.0, 2.2 * stride)),
        shoulders=(shoulders[0], shoulders[1]),
        spread=(float(rng.uniform(0.08, 0.2)), float(rng.uniform(0.08, 0.2))),
        elbows=(elbows[0], elbows[1]),
        inward=(inward[0], inward[1]),
        lean=float(rng.normal(0.02, 0.02)) + 0.05 * stride,
        sway=float(rng.normal(0, 0.012)),
        look=float(np.clip(rng.normal(0, 0.3), -0.8, 0.8)),
    )


@dataclass(frozen=True, slots=True)
class Skeleton:
    """Joints as (3,) points; pairs hold the right-hand side of the picture (seen from the front) first."""

    neck: Floats
    head: Floats
    waist: Floats
    pelvis: Floats
    shoulders: tuple[Floats, Floats]
    elbows: tuple[Floats, Floats]
    wrists: tuple[Floats, Floats]
    hands: tuple[Floats, Floats]
    hips: tuple[Floats, Floats]
    knees: tuple[Floats, Floats]
    ankles: tuple[Floats, Floats]
    toes: tuple[Floats, Floats]


def _bone(length: float, forward: float, outward: float) -> Floats:
    cos = math.cos(outward)
    return np.array(
        [length * math.sin(outward), -length * math.cos(forward) * cos, length * math.sin(forward) * cos], np.float32
    )


def _point(x: float, y: float, z: float) -> Floats:
    return np.array([x, y, z], np.float32)


def skeleton(build: Build, pose: Pose) -> Skeleton:
    """The joints of `build` in `pose`, moved so that the lower foot stands on y = 0."""
    thigh, shin = 0.238 * build.legs, 0.240 * build.legs
    hip_height = thigh + shin + 0.045
    torso = 0.315 * (2 - build.legs)
    lean = pose.lean

    def trunk(height: float, x: float = 0.0, z: float = 0.0) -> Floats:
        rise = torso * height
        return _point(x + pose.sway * height, hip_height + rise, z + rise * lean)

    legs, arms = [], []
    for i, sign in ((0, 1), (1, -1)):
        hip = _point(sign * 0.047 * build.hips * (0.7 + 0.3 * build.girth), hip_height, 0.0)
        knee = hip + _bone(thigh, pose.hips[i], sign * 0.02)
        shank = pose.hips[i] - pose.knees[i]
        ankle = knee + _bone(shin, shank, 0.0)
        pitch = np.clip(shank, -0.9, 0.25)
        toe = ankle + _point(sign * 0.018, -0.028 * math.cos(pitch) + 0.09 * math.sin(pitch), 0.085 * math.cos(pitch))
        legs.append((hip, knee, ankle, toe))
        shoulder = trunk(0.865, sign * 0.096 * build.shoulders * (0.75 + 0.25 * build.girth), 0.0)
        out = sign * (pose.spread[i] + 0.10 * (build.girth - 1))
        elbow = shoulder + _bone(0.172, pose.shoulders[i], out)
        fold = pose.shoulders[i] + pose.elbows[i]
        wrist = elbow + _bone(0.148, fold, out * 0.6 - sign * pose.inward[i])
        hand = wrist + _bone(0.055, fold + 0.1, -sign * 0.1 - sign * pose.inward[i] * 0.5)
        arms.append((shoulder, elbow, wrist, hand))
    floor = min(float(min(ankle[1] - 0.045, toe[1] - 0.017)) for _, _, ankle, toe in legs)
    drop = _point(0.0, floor, 0.0)

    def pair(limbs: list[tuple[Floats, Floats, Floats, Floats]], joint: int) -> tuple[Floats, Floats]:
        return limbs[0][joint] - drop, limbs[1][joint] - drop

    return Skeleton(
        neck=trunk(1.0) - drop,
        head=trunk(1.0) + _point(0.0, 0.035, 0.012) - drop,
        waist=trunk(0.38) - drop,
        pelvis=_point(0.0, hip_height, 0.0) - drop,
        shoulders=pair(arms, 0),
        elbows=pair(arms, 1),
        wrists=pair(arms, 2),
        hands=pair(arms, 3),
        hips=pair(legs, 0),
        knees=pair(legs, 1),
        ankles=pair(legs, 2),
        toes=pair(legs, 3),
    )
