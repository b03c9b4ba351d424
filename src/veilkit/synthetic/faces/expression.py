"""What a face does: action units, each from 0 to 1, and the emotions that combine them.

The units follow the Facial Action Coding System in small; the number of the nearest unit stands beside each.
"""

from __future__ import annotations

from dataclasses import dataclass, fields

import numpy as np

from veilkit.errors import ConfigError


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
