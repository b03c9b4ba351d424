"""The report: one HTML file that needs no network and holds no path and no original's name."""

from __future__ import annotations

import base64
import io
import shlex
from typing import Any, NamedTuple

import numpy as np
from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup
from numpy.typing import NDArray
from PIL import Image

from veilkit.attacks import ATTACKS, UNPAIRED_ATTACKS
from veilkit.attacks.membership_scores import ACCURACY, AUC, TPR
from veilkit.audit.attempts import Attempts
from veilkit.audit.figures import SETTING_TEXT, cmc_figure, gauge, histogram_figure, overlap
from veilkit.audit.pictures import FilePictures
from veilkit.audit.result import DIFFERENCE, SETTINGS, AuditResult, By, Measurement
from veilkit.audit.subject import Subject
from veilkit.audit.summary import SEEN, percent, points
from veilkit.types import Score

_STRIP = 8  # pictures shown
_THUMBNAIL = (320, 192)  # at most so wide and high
_SHOWN = ("rank-1", "mAP", "PSNR", "SSIM", AUC, TPR, ACCURACY)
_RATES = ("rank-1", "rank-5", "rank-10", "mAP", "mINP")


def write_report(
    result: AuditResult, subject: Subject, *, show_originals: bool, attempts: Attempts | None = None
) -> str:
    """The report's HTML. attempts: what a recovery network made of some pictures, shown only beside originals, for it
    may have succeeded.
    """
    environment = Environment(
        loader=PackageLoader("veilkit.audit", "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters.update(
        percent=percent, points=points, number=_number, direction=_direction, shown=_shown, unbroken=_unbroken
    )
    return environment.get_template("report.html").render(
        result=result,
        strip=_strip(subject, show_originals),
        recovered=_recovered(attempts) if attempts is not None and show_originals else [],
        gauges=[Markup(gauge(finding)) for finding in result.summary],  # noqa: S704 - made of numbers
        tables=[table for by in ("expert", "judge") if (table := _table(result, by))],
        figures=_figures(result),
        images=[m for m in result.measurements if m.by == "images"],
        attacks=[(evidence, _about(evidence.attack)) for evidence in result.attacks],
        chosen=_chosen,
        command=_command(result),
        setting_text=SETTING_TEXT,
        synthetic=any(evidence.attack in UNPAIRED_ATTACKS for evidence in result.attacks),
        seen=SEEN,
    )


class _About(NamedTuple):
    summary: str
    baseline: bool


def _about(attack: str) -> _About:
    if attack in UNPAIRED_ATTACKS:
        return _About(UNPAIRED_ATTACKS[attack].summary, False)
    return _About(ATTACKS[attack].summary, ATTACKS[attack].baseline)


def _strip(subject: Subject, show_originals: bool) -> list[dict[str, str]]:
    """Evenly chosen pictures as data addresses; originals only where the reader asked for them."""
    count = len(subject.protected)
    places = np.unique(np.linspace(0, count - 1, min(_STRIP, count)).round().astype(int))
    rows = []
    for place in places:
        row = {"protected": _data_address(subject.protected, int(place))}
        if show_originals and subject.originals is not None:
            row["original"] = _data_address(subject.originals, int(place))
        rows.append(row)
    return rows


def _recovered(attempts: Attempts) -> list[dict[str, str]]:
    return [
        {
            name: _address(images[place].permute(1, 2, 0).contiguous().numpy())
            for name, images in attempts.rows().items()
        }
        for place in range(len(attempts.recovered))
    ]


def _data_address(pictures: FilePictures, place: int) -> str:
    return _address(pictures.pixels(place))


def _address(pixels: NDArray[np.uint8]) -> str:
    image = Image.fromarray(pixels)
    image.thumbnail(_THUMBNAIL)
    buffer = io.BytesIO()
    image.save(buffer, "PNG")
    return "data:image/png;base64," + base64.b64encode(buffer.getvalue()).decode()


def _table(result: AuditResult, by: By) -> dict[str, Any] | None:
    rows = []
    for setting in SETTINGS:
        found = {m.score.metric: m for m in result.measurements if (m.by, m.setting) == (by, setting)}
        if found:
            rows.append((setting, [found[metric] for metric in _RATES]))
    if not rows:
        return None
    differences = [result.score(by, DIFFERENCE, metric) for metric in _RATES]
    return {
        "by": by,
        "metrics": _RATES,
        "rows": rows,
        "differences": differences if any(differences) else [],
        "who": getattr(result, by),
    }


def _figures(result: AuditResult) -> list[dict[str, Any]]:
    figures: list[dict[str, Any]] = []
    for by, who in (("expert", "authorised expert"), ("judge", "judge")):
        curves = [curve for curve in result.curves if curve.by == by]
        if curves:
            title = f"Right person among the first k answers, {who}"
            figures.append(
                {
                    "kind": "cmc",
                    "title": title,
                    "svg": Markup(cmc_figure(curves, name=f"cmc-{by}", title=title)),  # noqa: S704 - escaped there
                    "settings": [curve.setting for curve in curves],
                }
            )
    for histogram in result.histograms:
        if histogram.by == "judge":
            kind = "originals" if histogram.setting == "raw-raw" else "protected pictures"
            title = f"Similarities among {kind}, judge"
            svg = histogram_figure(histogram, name=f"similarities-{histogram.setting}", title=title)
            figures.append(
                {"kind": "histogram", "title": title, "svg": Markup(svg), "overlap": overlap(histogram)}  # noqa: S704
            )
    return figures


def _chosen(scores: tuple[Score, ...]) -> list[Score]:
    """The scores of an attack that its table shows; audit.json holds the rest."""
    return [score for score in scores if score.metric.endswith(_SHOWN) or score.metric.startswith("nearer")]


def _command(result: AuditResult) -> str:
    """The command that repeats the audit; experts that are files or were given as objects go by their names."""
    words = [
        "veilkit",
        "audit",
        "ORIGINALS",
        "PROTECTED",
        "--expert",
        result.expert.name,
        "--judge",
        result.judge.name,
    ]
    if result.config["labels"] != "auto":
        words += ["--labels", result.config["labels"]]
    if result.release is not None and result.release["key_commitment"] and result.release["names"] == "pseudonyms":
        words += ["--key", "KEY"]
    for fact, words_for in (("unseen", "--unseen UNSEEN"), ("held_out", "--held-out OTHERS")):
        words += words_for.split() if fact in result.config else []
    if "student_sha256" in result.config:
        words += ["--student", "STUDENT"]
    if "learn" in result.config:
        words += ["--learn", str(result.config["learn"])]
    for name in result.config.get("attacks", ()):
        words += ["--attack", name]
    if result.config["draw_seed"]:
        words += ["--draw-seed", str(result.config["draw_seed"])]
    return shlex.join(words)


def _unbroken(text: str) -> str:
    """The text with numbers and their per cent signs kept on one line."""
    return text.replace(" %", "\u00a0%")


def _shown(score: Score) -> str:
    """A score's value in its unit."""
    if score.metric == "SSIM":
        return f"{score.value:.3f}"
    if score.metric == "PSNR":
        return f"{score.value:.2f} dB"
    return f"{score.value:.0f}" if score.metric == "AD" else percent(score.value)


def _number(score: Score) -> str:
    """The interval in the same unit, or nothing."""
    if score.low is None or score.high is None:
        return ""
    digits = {"SSIM": 3, "PSNR": 2, "AD": 0}.get(score.metric)
    if digits is None:
        return f"{100 * score.low:.1f}–{100 * score.high:.1f}"
    return f"{score.low:.{digits}f}–{score.high:.{digits}f}"


def _direction(measurement: Measurement | Score) -> str:
    """What a reader should wish for."""
    if isinstance(measurement, Measurement):
        if measurement.reference:
            return "reference"
        measurement = measurement.score
    return f"{'high' if measurement.higher_is_better else 'low'} is good"
