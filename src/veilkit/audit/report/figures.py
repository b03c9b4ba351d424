"""Figures as SVG that takes its colours from the page, so that they follow light, dark and print."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from html import escape

from veilkit.audit.result import Curve, Finding, Histogram, Roc

SETTING_TEXT = {
    "raw-raw": "raw in raw",
    "raw-protected": "raw in protected",
    "protected-raw": "protected in raw",
    "protected-protected": "protected in protected",
}


@dataclass(frozen=True, slots=True)
class Area:
    """Where a figure draws: its size and margins. `x` and `y` map [0, 1] to places in it."""

    width: int = 460
    height: int = 280
    left: int = 46
    right: int = 22
    top: int = 14
    bottom: int = 40

    def x(self, share: float) -> float:
        """Rightwards."""
        return self.left + share * (self.width - self.left - self.right)

    def y(self, share: float) -> float:
        """Upwards."""
        return self.height - self.bottom - share * (self.height - self.top - self.bottom)

    def rate_lines(self) -> Iterable[str]:
        """A line and a label for each quarter, upwards."""
        for quarter in range(5):
            y = self.y(quarter / 4)
            yield f'<line class="grid" x1="{self.left}" x2="{self.width - self.right}" y1="{y:.1f}" y2="{y:.1f}"/>'
            yield text(self.left - 8, y + 4, f"{25 * quarter} %", "end")

    def svg(self, name: str, title: str, description: str, parts: Iterable[str]) -> str:
        """A figure of these parts with a title, and a description that says in words what it shows."""
        return (
            f'<svg class="figure" viewBox="0 0 {self.width} {self.height}" role="img" '
            f'aria-labelledby="{name}-title {name}-desc">'
            f'<title id="{name}-title">{escape(title)}</title><desc id="{name}-desc">{escape(description)}</desc>'
            f"{''.join(parts)}</svg>"
        )


_AREA = Area()


def cmc_figure(curves: Sequence[Curve], *, name: str, title: str) -> str:
    """Lines of the share of searches with a right answer among the first k, one for each setting."""
    longest = max(len(curve.rates) for curve in curves)

    def x(rank: int) -> float:
        return _AREA.x((rank - 1) / max(1, longest - 1))

    parts = [*_AREA.rate_lines(), *(_tick(x(rank), str(rank)) for rank in (1, 5, 10, 15, 20) if rank <= longest)]
    parts.append(_caption("first k answers"))
    for curve in curves:
        points = " ".join(f"{x(k):.1f},{_AREA.y(rate):.1f}" for k, rate in enumerate(curve.rates, 1))
        parts.append(f'<polyline class="line {curve.setting}" points="{points}"/>')
        start = f'cx="{x(1):.1f}" cy="{_AREA.y(curve.rates[0]):.1f}"'
        parts.append(f'<circle class="dot {curve.setting}" {start} r="3.5"/>')
    described = "; ".join(
        f"{SETTING_TEXT[c.setting]}: {c.rates[0]:.1%} at the first answer, {c.rates[-1]:.1%} within {len(c.rates)}"
        for c in curves
    )
    return _AREA.svg(name, title, described, parts)


def histogram_figure(histogram: Histogram, *, name: str, title: str) -> str:
    """Steps of the similarities of pictures of one person, and of different people."""
    top = max(*histogram.same, *histogram.different) or 1.0
    edges = histogram.edges
    span = edges[-1] - edges[0]
    x = [_AREA.x((edge - edges[0]) / span) for edge in edges]
    base = _AREA.y(0)
    parts = [f'<line class="axis" x1="{_AREA.left}" x2="{_AREA.width - _AREA.right}" y1="{base}" y2="{base}"/>']
    parts += [_tick(_AREA.x(step / 4), f"{edges[0] + step / 4 * span:.2f}") for step in range(5)]
    parts.append(_caption("similarity (cosine)"))
    for kind, shares in (("different", histogram.different), ("same", histogram.same)):
        steps = "".join(f"V{_AREA.y(share / top):.1f}H{x[place + 1]:.1f}" for place, share in enumerate(shares))
        parts.append(f'<path class="area {kind}" d="M{x[0]:.1f},{base:.1f}{steps}V{base:.1f}Z"/>')
    shared = f"The two shapes overlap by {overlap(histogram):.0%}; the more, the harder people are to tell apart."
    return _AREA.svg(name, title, shared, parts)


def roc_figure(curves: Sequence[Roc], *, name: str, title: str) -> str:
    """Lines of the pairs of one person that are accepted, against those of different people that are."""
    x, y = _AREA.x, _AREA.y
    parts = [*_AREA.rate_lines(), *(_tick(x(q / 4), f"{25 * q} %") for q in range(5))]
    parts.append(_caption("different people accepted as one"))
    parts.append(f'<line class="guess" x1="{x(0)}" y1="{y(0)}" x2="{x(1)}" y2="{y(1)}"/>')
    for curve in curves:
        points = " ".join(f"{x(f):.1f},{y(t):.1f}" for f, t in zip(curve.fpr, curve.tpr, strict=True))
        parts.append(f'<polyline class="line {curve.setting}" points="{points}"/>')
    areas = "; ".join(f"{SETTING_TEXT[c.setting]}: area {c.auc:.3f}, equal error rate {c.eer:.1%}" for c in curves)
    return _AREA.svg(name, title, areas + "; the diagonal is blind guessing", parts)


def gauge(finding: Finding) -> str:
    """A bar from 0 to 1 with the value, its interval, and what to compare it with."""
    parts = ['<rect class="track" x="0" y="9" width="300" height="6" rx="3"/>']
    parts.append(f'<rect class="fill" x="0" y="9" width="{300 * min(1.0, finding.value):.1f}" height="6" rx="3"/>')
    if finding.low is not None and finding.high is not None:
        low, high = 300 * finding.low, 300 * min(1.0, finding.high)
        parts.append(f'<line class="interval" x1="{low:.1f}" x2="{high:.1f}" y1="12" y2="12"/>')
    for value in finding.marks.values():
        place = min(298.5, max(1.5, 300 * value))
        parts.append(f'<line class="mark" x1="{place:.1f}" x2="{place:.1f}" y1="3" y2="21"/>')
    start = '<svg class="gauge" viewBox="0 0 300 24" preserveAspectRatio="xMinYMid" aria-hidden="true"'
    return f'{start} focusable="false">{"".join(parts)}</svg>'


def overlap(histogram: Histogram) -> float:
    """The share that both shapes have in common, in [0, 1]."""
    return sum(min(a, b) for a, b in zip(histogram.same, histogram.different, strict=True))


def text(x: float, y: float, words: str, anchor: str) -> str:
    """Words at a place."""
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{escape(words)}</text>'


def _tick(x: float, words: str) -> str:
    return text(x, _AREA.height - _AREA.bottom + 18, words, "middle")


def _caption(words: str) -> str:
    return text((_AREA.width + _AREA.left - _AREA.right) / 2, _AREA.height - 6, words, "middle")
