"""What all pages share: templates, and numbers as they stand in a table."""

from __future__ import annotations

from functools import cache

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from veilkit.audit.report.figures import gauge
from veilkit.audit.result import Finding, Measurement
from veilkit.audit.verdicts.verdict import Grade
from veilkit.audit.verdicts.wording import percent, points
from veilkit.types import Score

_DIGITS = {"SSIM": 3, "PSNR": 2, "AD": 0}  # of scores that are no rates
SIGNS = {
    Grade.BROKEN: "■",
    Grade.SERIOUS: "▲",
    Grade.SLIGHT: "△",
    Grade.UNCLEAR: "?",
    Grade.NOTHING_FOUND: "○",
    Grade.NO_VERDICT: "×",
    Grade.NOT_ATTACKED: "–",
}
"""A shape for each grade, so that colour is never all that tells them apart."""


@cache
def environment() -> Environment:
    """The templates of this package; what they are given is escaped."""
    made = Environment(
        loader=PackageLoader("veilkit.audit.report", "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters.update(
        percent=percent,
        points=points,
        span=span,
        direction=direction,
        shown=shown,
        unbroken=unbroken,
        sign=SIGNS.get,
        gauge=_gauge,
    )
    return made


def as_markup(drawn: str) -> Markup:
    """A figure, made of numbers and of texts that are escaped where it is drawn."""
    return Markup(drawn)  # noqa: S704


def _gauge(finding: Finding) -> Markup:
    return as_markup(gauge(finding))


def unbroken(text: str) -> str:
    """The text with numbers and their per cent signs kept on one line."""
    return text.replace(" %", "\u00a0%")


def shown(score: Score) -> str:
    """A score's value in its unit."""
    digits = _digits(score)
    if digits is None:
        return percent(score.value)
    return f"{score.value:.{digits}f}{' dB' if 'PSNR' in score.metric else ''}"


def span(score: Score) -> str:
    """The interval in the same unit, or nothing."""
    if score.low is None or score.high is None:
        return ""
    digits = _digits(score)
    if digits is None:
        return f"{100 * score.low:.1f}–{100 * score.high:.1f}"
    return f"{score.low:.{digits}f}–{score.high:.{digits}f}"


def direction(measurement: Measurement | Score) -> str:
    """What a reader should wish for."""
    if isinstance(measurement, Measurement):
        if measurement.reference:
            return "reference"
        measurement = measurement.score
    return f"{'high' if measurement.higher_is_better else 'low'} is good"


def _digits(score: Score) -> int | None:
    return next((digits for name, digits in _DIGITS.items() if score.metric.startswith(name)), None)
