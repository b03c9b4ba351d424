"""The decisions of supervision upgradation on disk: JSON lines with every number, and a figure of them."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from html import escape
from pathlib import Path
from typing import Any

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
