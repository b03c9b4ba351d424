"""Figures as SVG that takes its colours from the page, so that they follow light, dark and print."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from veilkit.audit.result import Curve, Finding, Histogram, Roc

WIDTH, HEIGHT = 460, 280
_LEFT, _RIGHT, _TOP, _BOTTOM = 46, 22, 14, 40
SETTING_TEXT = {
    "raw-raw": "raw in raw",
    "raw-protected": "raw in protected",
    "protected-raw": "protected in raw",
    "protected-protected": "protected in protected",
}


def cmc_figure(curves: Sequence[Curve], *, name: str, title: str) -> str:
    """Lines of the share of searches with a right answer among the first k, one for each setting."""
    longest = max(len(curve.rates) for curve in curves)

    def x(rank: int) -> float:
        return _LEFT + (rank - 1) / max(1, longest - 1) * (WIDTH - _LEFT - _RIGHT)

    ranks = [rank for rank in (1, 5, 10, 15, 20) if rank <= longest]
    parts = [_rates_axis(), *(_text(x(rank), HEIGHT - _BOTTOM + 18, str(rank), "middle") for rank in ranks)]
    parts.append(_text((WIDTH + _LEFT - _RIGHT) / 2, HEIGHT - 6, "first k answers", "middle"))
    for curve in curves:
        points = " ".join(f"{x(k):.1f},{_y(rate):.1f}" for k, rate in enumerate(curve.rates, 1))
        parts.append(f'<polyline class="line {curve.setting}" points="{points}"/>')
        parts.append(f'<circle class="dot {curve.setting}" cx="{x(1):.1f}" cy="{_y(curve.rates[0]):.1f}" r="3.5"/>')
    text = "; ".join(f"{SETTING_TEXT[c.setting]}: {c.rates[0]:.1%} at the first answer, {c.rates[-1]:.1%} within "
                     f"{len(c.rates)}" for c in curves)  # fmt: skip
    return svg(name, title, text, parts)


def histogram_figure(histogram: Histogram, *, name: str, title: str) -> str:
    """Steps of the similarities of pictures of one person, and of different people."""
    top = max(*histogram.same, *histogram.different) or 1.0
    edges = histogram.edges
    span = edges[-1] - edges[0]

    def x(value: float) -> float:
        return _LEFT + (value - edges[0]) / span * (WIDTH - _LEFT - _RIGHT)

    def y(share: float) -> float:
        return HEIGHT - _BOTTOM - share / top * (HEIGHT - _TOP - _BOTTOM)

    parts = [f'<line class="axis" x1="{_LEFT}" x2="{WIDTH - _RIGHT}" y1="{y(0)}" y2="{y(0)}"/>']
    for step in range(5):
        value = edges[0] + step / 4 * span
        parts.append(_text(x(value), HEIGHT - _BOTTOM + 18, f"{value:.2f}", "middle"))
    parts.append(_text((WIDTH + _LEFT - _RIGHT) / 2, HEIGHT - 6, "similarity (cosine)", "middle"))
    for kind, shares in (("different", histogram.different), ("same", histogram.same)):
        steps = [f"M{x(edges[0]):.1f},{y(0):.1f}"]
        for place, share in enumerate(shares):
            steps.append(f"V{y(share):.1f}H{x(edges[place + 1]):.1f}")
        parts.append(f'<path class="area {kind}" d="{"".join(steps)}V{y(0):.1f}Z"/>')
    text = f"The two shapes overlap by {overlap(histogram):.0%}; the more, the harder people are to tell apart."
    return svg(name, title, text, parts)


def roc_figure(curves: Sequence[Roc], *, name: str, title: str) -> str:
    """Lines of the pairs of one person that are accepted, against those of different people that are."""

    def x(rate: float) -> float:
        return _LEFT + rate * (WIDTH - _LEFT - _RIGHT)

    parts = [_rates_axis(), *(_text(x(q / 4), HEIGHT - _BOTTOM + 18, f"{25 * q} %", "middle") for q in range(5))]
    parts.append(_text((WIDTH + _LEFT - _RIGHT) / 2, HEIGHT - 6, "different people accepted as one", "middle"))
    parts.append(f'<line class="guess" x1="{x(0)}" y1="{_y(0)}" x2="{x(1)}" y2="{_y(1)}"/>')
    for curve in curves:
        points = " ".join(f"{x(f):.1f},{_y(t):.1f}" for f, t in zip(curve.fpr, curve.tpr, strict=True))
        parts.append(f'<polyline class="line {curve.setting}" points="{points}"/>')
    text = "; ".join(f"{SETTING_TEXT[c.setting]}: area {c.auc:.3f}, equal error rate {c.eer:.1%}" for c in curves)
    return svg(name, title, text + "; the diagonal is blind guessing", parts)


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


def _rates_axis() -> str:
    lines = []
    for tenth in (0, 25, 50, 75, 100):
        y = _y(tenth / 100)
        lines.append(f'<line class="grid" x1="{_LEFT}" x2="{WIDTH - _RIGHT}" y1="{y:.1f}" y2="{y:.1f}"/>')
        lines.append(_text(_LEFT - 8, y + 4, f"{tenth} %", "end"))
    return "".join(lines)


def _y(rate: float) -> float:
    return HEIGHT - _BOTTOM - rate * (HEIGHT - _TOP - _BOTTOM)


def _text(x: float, y: float, text: str, anchor: str) -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{escape(text)}</text>'


def svg(name: str, title: str, text: str, parts: Sequence[str], size: tuple[int, int] = (WIDTH, HEIGHT)) -> str:
    """A figure of these parts with a title, and a text that tells in words what it shows."""
    return (
        f'<svg class="figure" viewBox="0 0 {size[0]} {size[1]}" role="img" '
        f'aria-labelledby="{name}-title {name}-desc">'
        f'<title id="{name}-title">{escape(title)}</title><desc id="{name}-desc">{escape(text)}</desc>'
        f"{''.join(parts)}</svg>"
    )
