"""The privacy-utility plane: to the right what is kept, upwards what leaks, and which releases no other beats."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from html import escape
from typing import Literal

from veilkit.audit.report.figures import Area, text
from veilkit.audit.verdicts.verdict import AttackVerdict
from veilkit.types import Score

_AREA = Area(height=340, left=56, right=26, top=16, bottom=46)
_GLYPH = 7.2  # width of a letter of the labels, in units of the figure
_PLACES: tuple[tuple[float, float, str], ...] = (
    (10, -8, "start"), (10, 17, "start"), (-10, -8, "end"), (-10, 17, "end"), (10, 31, "start"), (10, -22, "start"),
    (-10, 31, "end"), (-10, -22, "end"), (-10, 45, "end"), (-10, -36, "end"), (10, 45, "start"), (10, -36, "start"),
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

    @classmethod
    def of(cls, label: str, name: str, utility: Score, worst: AttackVerdict) -> Point:
        """What is kept, and what the worst attack gets, with their intervals."""
        over = worst.over_chance_low, worst.over_chance_high
        intervals = _interval(utility.low, utility.high), _interval(*over)
        return cls(label, name, utility.value, worst.over_chance or 0.0, *intervals)

    @property
    def place(self) -> tuple[float, float]:
        """Where it is drawn."""
        return _AREA.x(self.utility), _AREA.y(self.leak)


def anchors(originals: Score | None, chance: float | None, worst: Sequence[AttackVerdict]) -> Iterator[Point]:
    """The originals, by the utility on them and by what the same attacks get of them, and blind guessing."""
    clean = max((each.unprotected for each in worst if each.unprotected is not None), default=None)
    if originals is not None and clean is not None:
        yield Point("originals", "nothing protected", originals.value, clean, kind="anchor")
    if chance is not None:
        yield Point("chance", "blind guessing", chance, 0.0, kind="anchor")


def plane_figure(points: Sequence[Point], *, name: str, title: str, front: bool = True) -> str:
    """Points with their intervals; with `front`, those that no other release beats are filled and joined."""
    releases = [point for point in points if point.kind == "release"]
    best = [releases[place] for place in pareto_front([(p.utility, p.leak) for p in releases])] if front else releases
    parts = [*_axes()]
    if front and len(best) > 1:
        steps = " L".join(f"{x:.1f},{y:.1f}" for x, y in (point.place for point in best))
        parts.append(f'<path class="front" d="M{steps}"/>')
    taken = [_around(point) for point in points]
    for point in points:
        parts += [*_whiskers(point), _marker(point, filled=point in best), _label(point, taken)]
    described = "; ".join(
        f"{p.label}, {p.name}: {p.utility:.0%} kept, {p.leak:.0%} leaked"
        + (", on the Pareto front" if front and len(releases) > 1 and p in best else "")
        for p in points
    )
    return _AREA.svg(name, title, described, parts)


def dominates(one: tuple[float, float], other: tuple[float, float]) -> bool:
    """Whether (utility, leak) of one is as good as the other's in both and better in one.

    >>> dominates((0.9, 0.1), (0.8, 0.1)), dominates((0.9, 0.1), (0.9, 0.1)), dominates((0.9, 0.2), (0.8, 0.1))
    (True, False, False)
    """
    return one[0] >= other[0] and one[1] <= other[1] and one != other


def pareto_front(points: Sequence[tuple[float, float]]) -> tuple[int, ...]:
    """Positions of the (utility, leak) points that no other dominates, by rising utility; equal points all stay.

    >>> pareto_front([(0.9, 0.5), (0.5, 0.1), (0.4, 0.2), (0.9, 0.6)])
    (1, 0)
    """
    kept = [place for place, point in enumerate(points) if not any(dominates(other, point) for other in points)]
    return tuple(sorted(kept, key=lambda place: points[place]))


def _axes() -> Iterator[str]:
    bottom = _AREA.height - _AREA.bottom
    yield from _AREA.rate_lines()
    for quarter in range(5):
        x = _AREA.x(quarter / 4)
        yield f'<line class="grid" x1="{x:.1f}" x2="{x:.1f}" y1="{_AREA.top}" y2="{bottom}"/>'
        yield text(x, bottom + 17, f"{25 * quarter} %", "middle")
    utility = "utility: right person found by the expert →"
    yield text((_AREA.left + _AREA.width - _AREA.right) / 2, _AREA.height - 8, utility, "middle")
    turned = f"translate(13 {(_AREA.top + bottom) / 2:.0f}) rotate(-90)"
    yield f'<text transform="{turned}" text-anchor="middle">leak over chance →</text>'


def _whiskers(point: Point) -> Iterator[str]:
    x, y = point.place
    if point.utility_interval is not None:
        low, high = map(_AREA.x, point.utility_interval)
        yield f'<line class="whisker" x1="{low:.1f}" x2="{high:.1f}" y1="{y:.1f}" y2="{y:.1f}"/>'
    if point.leak_interval is not None:
        low, high = map(_AREA.y, point.leak_interval)
        yield f'<line class="whisker" x1="{x:.1f}" x2="{x:.1f}" y1="{low:.1f}" y2="{high:.1f}"/>'


def _marker(point: Point, *, filled: bool) -> str:
    x, y = point.place
    if point.kind == "anchor":
        return f'<path class="anchor" d="M{x:.1f},{y - 6:.1f}l6,6l-6,6l-6,-6z"/>'
    return f'<circle class="release{" best" if filled else ""}" cx="{x:.1f}" cy="{y:.1f}" r="5.5"/>'


def _label(point: Point, taken: list[Box]) -> str:
    """The label beside its point where it covers nothing, as far as there is such a place."""
    x, y = point.place
    width = _GLYPH * len(point.label)
    boxes: list[tuple[Box, tuple[float, float, str]]] = []
    for right, down, anchor in _PLACES:
        left = x + right - (width if anchor == "end" else 0)
        box = (left, y + down - 10, left + width, y + down + 2)
        if box[0] >= _AREA.left - 40 and box[2] <= _AREA.width and box[1] >= 0:
            boxes.append((box, (x + right, y + down, anchor)))
    free = (each for each in boxes if not any(_overlap(each[0], other) for other in taken))
    box, (at, height, anchor) = next(free, boxes[0])
    taken.append(box)
    return f'<text class="label" x="{at:.1f}" y="{height:.1f}" text-anchor="{anchor}">{escape(point.label)}</text>'


def _around(point: Point) -> Box:
    x, y = point.place
    return x - 6, y - 6, x + 6, y + 6


def _overlap(one: Box, other: Box) -> bool:
    return one[0] < other[2] and other[0] < one[2] and one[1] < other[3] and other[1] < one[3]


def _interval(low: float | None, high: float | None) -> tuple[float, float] | None:
    return None if low is None or high is None else (low, high)
