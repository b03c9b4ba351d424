"""The report: one HTML file that needs no network and holds no path and no original's name."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from veilkit.audit.inputs.subject import Subject
from veilkit.audit.report.figures import SETTING_TEXT, cmc_figure, gauge, histogram_figure, overlap, roc_figure
from veilkit.audit.report.model import ADVICE, RISKS, Report, report_of
from veilkit.audit.report.pictures import Recovered, recovered_rows, recovering, strip
from veilkit.audit.report.plane import plane_figure
from veilkit.audit.result import AuditResult
from veilkit.audit.verdicts.verdict import KNOWS, Grade
from veilkit.audit.verdicts.wording import described, direction, percent, points, shown, span, unbroken

SIGNS = dict(zip(Grade, "■▲△?○×–", strict=True))
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
    for each in (percent, points, span, direction, shown, unbroken):
        made.filters[each.__name__] = each
    made.filters |= {"sign": SIGNS.get, "gauge": lambda finding: as_markup(gauge(finding))}
    return made


def as_markup(drawn: str) -> Markup:
    """A figure, made of numbers and of texts that are escaped where it is drawn."""
    return Markup(drawn)  # noqa: S704


def write_report(
    result: AuditResult,
    subject: Subject,
    *,
    show_originals: bool,
    recovered: Recovered | None = None,
    seconds: Mapping[str, float] | None = None,
) -> str:
    """The report's HTML. recovered: pictures that an attack recovered, shown only beside originals, for it may have
    succeeded. seconds: processor time of attacks.
    """
    report = report_of(result)
    return (
        environment()
        .get_template("report.html")
        .render(
            result=result,
            strip=strip(subject, show_originals),
            recovered=recovered_rows(recovered.pictures) if recovered is not None and show_originals else [],
            recovered_by=None if recovered is None else recovered.attack,
            recovered_how="" if recovered is None else described(recovered.attack).summary,
            withheld=[] if show_originals else recovering(result.attacks),
            report=report,
            advice=ADVICE,
            risks_note=RISKS,
            plane=_plane(report),
            knows=KNOWS,
            seconds=seconds or {},
            figures=_figures(result),
            setting_text=SETTING_TEXT,
        )
    )


def _plane(report: Report) -> dict[str, Any] | None:
    if not report.plane:
        return None
    title = "What is kept and what leaks"
    return {
        "title": title,
        "svg": as_markup(plane_figure(report.plane, name="kept-and-leaked", title=title, front=False)),
        "points": report.plane,
    }


def _figures(result: AuditResult) -> list[dict[str, Any]]:
    figures: list[dict[str, Any]] = []
    for by, who in (("expert", "authorised expert"), ("judge", "judge")):
        if curves := [curve for curve in result.curves if curve.by == by]:
            title = f"Right person among the first k answers (CMC), {who}"
            figures.append(_figure(title, cmc_figure(curves, name=f"cmc-{by}", title=title),
                                   {curve.setting: SETTING_TEXT[curve.setting] for curve in curves}))  # fmt: skip
    if rocs := [each for each in result.rocs if each.by == "judge"]:
        title = "Pairs of one person told from pairs of different people (ROC), judge"
        note = "; ".join(
            f"{SETTING_TEXT[each.setting]}: area {each.auc:.3f}, equal error rate {100 * each.eer:.1f} %, "
            f"{100 * each.tpr[each.fpr.index(0.01)]:.1f} % accepted at 1 % false ones" for each in rocs
        )  # fmt: skip
        pairs = f"{rocs[0].pairs[0]:,} pairs of one person, {rocs[0].pairs[1]:,} of different people."
        legend = {each.setting: SETTING_TEXT[each.setting] for each in rocs}
        figures.append(_figure(title, roc_figure(rocs, name="roc", title=title), legend, f"{note}. {pairs}"))
    for histogram in result.histograms:
        if histogram.by == "judge":
            kind = "originals" if histogram.setting == "raw-raw" else "protected pictures"
            title = f"Similarities among {kind}, judge"
            drawn = histogram_figure(histogram, name=f"similarities-{histogram.setting}", title=title)
            note = f"Overlap {100 * overlap(histogram):.0f} %: the more, the harder people are to tell apart."
            figures.append(_figure(title, drawn, {"same": "same person", "different": "different people"}, note))
    return figures


def _figure(title: str, drawn: str, legend: dict[str, str], note: str = "") -> dict[str, Any]:
    return {"title": title, "svg": as_markup(drawn), "legend": legend, "note": note}
