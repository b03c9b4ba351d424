"""What supervises PrivacyReID's generator: desensitised pictures, until learned ones take their place (Section 3.4).

Decisions are pure functions of what was measured on the validation people; they are written as JSON lines and as a
figure.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import Any, Literal, TypeAlias

from torch import Tensor

from veilkit.methods.base import Method
from veilkit.methods.controls import Blur, Noise, Pixelate
from veilkit.methods.privacyreid.config import PrivacyReidConfig
from veilkit.rng import Randomness
from veilkit.types import ImageBatch

Action: TypeAlias = Literal["upgrade", "keep", "revert"]
_CONTROLS: Mapping[str, type[Method[Any]]] = {"blur": Blur, "pixelate": Pixelate, "noise": Noise}


@dataclass(frozen=True, slots=True)
class Desensitiser:
    """A conventional protection, as the first supervision. name: tells two of them apart, with their strength.

    apply: images (N, 3, H, W) in [0, 1] and a name for each, from which its random values derive, to the same shape.
    """

    name: str
    apply: Callable[[Tensor, Sequence[str]], Tensor]


def desensitiser(config: PrivacyReidConfig) -> Desensitiser:
    """The control that a configuration names, as the first supervision of its training."""
    control = _CONTROLS[config.desensitise]()
    rng = Randomness.from_seed(config.reid.seed).child("desensitise")

    def apply(images: Tensor, names: Sequence[str]) -> Tensor:
        made = control.protect(ImageBatch(images, tuple(names)), rng=rng).images
        assert made is not None
        return made

    return Desensitiser(control.fingerprint(), apply)


@dataclass(frozen=True, slots=True)
class Limits:
    """What the desensitised pictures of the validation people measured, and how much more is allowed.

    psnr, ssim: mean likeness of desensitised pictures to their originals, in dB and in [-1, 1]. rank1: share of raw
    queries found in a desensitised gallery, by a network trained on both; None where nothing is to be upgraded.
    """

    psnr: float
    ssim: float
    rank1: float | None = None
    psnr_slack: float = 1.0
    ssim_slack: float = 0.05
    rank1_slack: float = 0.05

    def private(self, psnr: float, ssim: float) -> bool:
        """Whether pictures of this likeness to their originals satisfy both privacy constraints."""
        return psnr < self.psnr + self.psnr_slack and ssim < self.ssim + self.ssim_slack

    @property
    def first_rank1(self) -> float | None:
        """What the first upgrade has to beat."""
        return None if self.rank1 is None else self.rank1 - self.rank1_slack


@dataclass(frozen=True, slots=True)
class Supervision:
    """What the generator is trained towards, between two checks.

    best: Rank-1 that the next upgrade has to beat, that of the last upgrade or the first value. upgraded: whether the
    targets are a frozen generator's pictures instead of desensitised ones.
    """

    best: float
    upgraded: bool = False


def decide(
    psnr: float, ssim: float, rank1: float, *, limits: Limits, before: Supervision
) -> tuple[Action, Supervision]:
    """What follows from a check of the generator as it is now.

    psnr, ssim: of its pictures against their originals. rank1: raw queries found in a gallery of its pictures.
    Private pictures that beat the best become the targets; pictures that are not private bring the desensitised ones
    back. The best stays as it was unless there is an upgrade: a failed check sets no mark.
    """
    if not limits.private(psnr, ssim):
        return ("revert" if before.upgraded else "keep"), Supervision(before.best)
    if rank1 > before.best:
        return "upgrade", Supervision(rank1, upgraded=True)
    return "keep", before


_WIDTH, _PANEL, _LEFT, _RIGHT, _TOP = 480, 150, 56, 110, 26
_PANELS = (("psnr", "PSNR, dB", "psnr_limit"), ("ssim", "SSIM", "ssim_limit"), ("rank1", "Rank-1", "rank1_to_beat"))
_COLOURS = {"upgrade": "#2f7d4f", "revert": "#b3401f", "keep": "#1f5fa8", "off": "#1f5fa8"}


def write_decisions(folder: Path, decisions: Sequence[Mapping[str, Any]]) -> None:
    """`decisions.jsonl` and `decisions.svg` in `folder`, each whole or not at all."""
    folder.mkdir(parents=True, exist_ok=True)
    lines = [json.dumps(decision, sort_keys=True) + "\n" for decision in decisions]
    _replace(folder / "decisions.jsonl", "".join(lines))
    _replace(folder / "decisions.svg", decision_figure(decisions))


def decision_figure(decisions: Sequence[Mapping[str, Any]]) -> str:
    """An SVG: what each check measured, the limit it was held to (dashed), and what was decided (shape)."""
    height = len(_PANELS) * _PANEL + 40
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {height}" role="img" font-size="11" '
        'font-family="sans-serif"><title>Checks of the supervision</title>'
        f'<rect width="{_WIDTH}" height="{height}" fill="#fff"/>'
    ]
    for place, (name, title, limit) in enumerate(_PANELS):
        parts += _panel(decisions, name, title, limit, place * _PANEL)
    for place, action in enumerate(("upgrade", "keep", "revert")):
        y = _TOP + 20 * place
        parts.append(_mark(_WIDTH - _RIGHT + 24, y, action))
        parts.append(f'<text x="{_WIDTH - _RIGHT + 34}" y="{y + 4}">{action}</text>')
    parts.append(f'<text x="{(_LEFT + _WIDTH - _RIGHT) / 2}" y="{height - 8}" text-anchor="middle">epoch</text>')
    return "".join(parts) + "</svg>\n"


def _panel(decisions: Sequence[Mapping[str, Any]], name: str, title: str, limit: str, top: int) -> list[str]:
    epochs: list[int] = [decision["epoch"] for decision in decisions] or [0]
    values: list[float] = [
        decision[key] for decision in decisions for key in (name, limit) if decision[key] is not None
    ] or [0.0]
    low, high = min(values), max(values)
    span, width = (high - low) or 1.0, (max(epochs) - min(epochs)) or 1

    def x(epoch: int) -> float:
        return _LEFT + 6 + (epoch - min(epochs)) / width * (_WIDTH - _LEFT - _RIGHT - 12)

    def y(value: float) -> float:
        return top + _PANEL - 14 - (value - low) / span * (_PANEL - 14 - _TOP - 10)

    floor = top + _PANEL - 6
    parts = [
        f'<path d="M{_LEFT},{top + _TOP} V{floor} H{_WIDTH - _RIGHT}" fill="none" stroke="#555"/>',
        f'<text x="{_LEFT}" y="{top + 18}">{escape(title)}</text>',
        f'<text x="{_LEFT - 6}" y="{y(low) + 4:.1f}" text-anchor="end">{low:.3g}</text>',
        f'<text x="{_LEFT - 6}" y="{y(high) + 4:.1f}" text-anchor="end">{high:.3g}</text>',
    ]
    for key, dashes in ((limit, ' stroke-dasharray="4 3"'), (name, "")):
        points = " ".join(f"{x(d['epoch']):.1f},{y(d[key]):.1f}" for d in decisions if d[key] is not None)
        parts.append(f'<polyline points="{points}" fill="none" stroke="#888"{dashes}/>')
    for d in decisions:
        parts.append(_mark(x(d["epoch"]), y(d[name]), d["action"]))
        parts.append(f'<text x="{x(d["epoch"]):.1f}" y="{floor + 12}" text-anchor="middle">{d["epoch"]}</text>')
    return parts


def _mark(x: float, y: float, action: str) -> str:
    """A triangle upwards for an upgrade and downwards for a revert, else a dot: not everybody sees colours."""
    sides = {"upgrade": (-6, 4), "revert": (6, -4)}.get(action)
    if sides is None:
        return f'<circle class="check" cx="{x:.1f}" cy="{y:.1f}" r="4" fill="{_COLOURS[action]}"/>'
    tip, base = sides
    path = f"M{x:.1f},{y + tip:.1f} L{x - 6:.1f},{y + base:.1f} H{x + 6:.1f} Z"
    return f'<path class="check" d="{path}" fill="{_COLOURS[action]}"/>'


def _replace(file: Path, text: str) -> None:
    part = file.with_name(f".{file.name}.part")
    part.write_text(text)
    part.replace(file)
