"""The privacy-utility plane as a figure: to the right what is kept, upwards what leaks."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from typing import Literal

from veilkit.audit.report.figures import svg
from veilkit.audit.verdicts.pareto import pareto_front

WIDTH, HEIGHT = 460, 340
_LEFT, _RIGHT, _TOP, _BOTTOM = 56, 26, 16, 46
_GLYPH = 7.2  # width of a letter of the labels, in units of the figure
_PLACES: tuple[tuple[float, float, str], ...] = (
    (10, -8, "start"), (10, 17, "start"), (-10, -8, "end"), (-10, 17, "end"), (10, 31, "start"), (10, -22, "start"),
)  # fmt: skip

Box = tuple[float, float, float, float]


@dataclass(frozen=True, slots=True)
class Point:
    """A release, or an anchor to compare with. utility, leak: in [0, 1]; intervals as (low, high) where known.

    label: short, beside the point. name: what it stands for, in words.
    """

    label: str
    name: str
    utility: float
    leak: float
    utility_interval: tuple[float, float] | None = None
    leak_interval: tuple[float, float] | None = None
    kind: Literal["release", "anchor"] = "release"


def plane_figure(points: Sequence[Point], *, name: str, title: str, front: bool = True) -> str:
    """Points with their intervals; with `front`, those that no other release beats are filled and joined."""
    releases = [point for point in points if point.kind == "release"]
    best = [releases[place] for place in pareto_front([(p.utility, p.leak) for p in releases])] if front else releases
    parts = [_axes()]
    if front and len(best) > 1:
        steps = " ".join(
            f"{'L' if place else 'M'}{_x(p.utility):.1f},{_y(p.leak):.1f}" for place, p in enumerate(best)
        )
        parts.append(f'<path class="front" d="{steps}"/>')
    taken: list[Box] = [_around(point) for point in points]
    for point in points:
        parts += [_whiskers(point), _marker(point, filled=point in best), _label(point, taken)]
    text = "; ".join(
        f"{p.label}, {p.name}: {p.utility:.0%} kept, {p.leak:.0%} leaked"
        + (", on the Pareto front" if front and len(releases) > 1 and p in best else "")
        for p in points
    )
    return svg(name, title, text, parts, size=(WIDTH, HEIGHT))


def _axes() -> str:
    lines = []
    for quarter in range(5):
        x, y = _x(quarter / 4), _y(quarter / 4)
        lines.append(f'<line class="grid" x1="{_LEFT}" x2="{WIDTH - _RIGHT}" y1="{y:.1f}" y2="{y:.1f}"/>')
        lines.append(f'<line class="grid" x1="{x:.1f}" x2="{x:.1f}" y1="{_TOP}" y2="{HEIGHT - _BOTTOM}"/>')
        lines.append(_text(x, HEIGHT - _BOTTOM + 17, f"{25 * quarter} %", "middle"))
        lines.append(_text(_LEFT - 8, y + 4, f"{25 * quarter} %", "end"))
    middle = (_TOP + HEIGHT - _BOTTOM) / 2
    lines.append(
        _text((_LEFT + WIDTH - _RIGHT) / 2, HEIGHT - 8, "utility: right person found by the expert →", "middle")
    )
    lines.append(
        f'<text transform="translate(13 {middle:.0f}) rotate(-90)" text-anchor="middle">leak over chance →</text>'
    )
    return "".join(lines)


def _whiskers(point: Point) -> str:
    x, y = _x(point.utility), _y(point.leak)
    lines = []
    if point.utility_interval is not None:
        low, high = map(_x, point.utility_interval)
        lines.append(f'<line class="whisker" x1="{low:.1f}" x2="{high:.1f}" y1="{y:.1f}" y2="{y:.1f}"/>')
    if point.leak_interval is not None:
        low, high = map(_y, point.leak_interval)
        lines.append(f'<line class="whisker" x1="{x:.1f}" x2="{x:.1f}" y1="{low:.1f}" y2="{high:.1f}"/>')
    return "".join(lines)


def _marker(point: Point, *, filled: bool) -> str:
    x, y = _x(point.utility), _y(point.leak)
    if point.kind == "anchor":
        return f'<path class="anchor" d="M{x:.1f},{y - 6:.1f}l6,6l-6,6l-6,-6z"/>'
    return f'<circle class="release{" best" if filled else ""}" cx="{x:.1f}" cy="{y:.1f}" r="5.5"/>'


def _label(point: Point, taken: list[Box]) -> str:
    """The label beside its point where it covers nothing, as far as there is such a place."""
    x, y = _x(point.utility), _y(point.leak)
    width = _GLYPH * len(point.label)
    boxes: list[tuple[Box, tuple[float, float, str]]] = []
    for right, down, anchor in _PLACES:
        left = x + right - (width if anchor == "end" else 0)
        box = (left, y + down - 10, left + width, y + down + 2)
        if box[0] >= _LEFT - 40 and box[2] <= WIDTH and box[1] >= 0:
            boxes.append((box, (x + right, y + down, anchor)))
    free = (each for each in boxes if not any(_overlap(each[0], other) for other in taken))
    box, (at, height, anchor) = next(free, boxes[0])
    taken.append(box)
    return f'<text class="label" x="{at:.1f}" y="{height:.1f}" text-anchor="{anchor}">{escape(point.label)}</text>'


def _around(point: Point) -> Box:
    x, y = _x(point.utility), _y(point.leak)
    return x - 6, y - 6, x + 6, y + 6


def _overlap(one: Box, other: Box) -> bool:
    return one[0] < other[2] and other[0] < one[2] and one[1] < other[3] and other[1] < one[3]


def _x(utility: float) -> float:
    return _LEFT + utility * (WIDTH - _LEFT - _RIGHT)


def _y(leak: float) -> float:
    return HEIGHT - _BOTTOM - leak * (HEIGHT - _TOP - _BOTTOM)


def _text(x: float, y: float, text: str, anchor: str) -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{escape(text)}</text>'
