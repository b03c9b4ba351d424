"""The report: one HTML file that needs no network and holds no path and no original's name."""

from __future__ import annotations

from typing import Any

from markupsafe import Markup

from veilkit.attacks import UNPAIRED_ATTACKS
from veilkit.audit.cells.recovered_pictures import Recovered, recovering
from veilkit.audit.inputs.subject import Subject
from veilkit.audit.report.command import command
from veilkit.audit.report.figures import SETTING_TEXT, cmc_figure, gauge, histogram_figure, overlap, roc_figure
from veilkit.audit.report.overview import ADVICE, plane_points, rests_on, thresholds_of, utility
from veilkit.audit.report.plane import plane_figure
from veilkit.audit.report.tables import attack_rows, recognition_tables
from veilkit.audit.report.templating import environment
from veilkit.audit.report.thumbnails import recovered_rows, strip
from veilkit.audit.result import AuditResult
from veilkit.audit.verdicts.findings import SEEN
from veilkit.audit.verdicts.remedies import needed
from veilkit.audit.verdicts.verdict import KNOWS
from veilkit.audit.verdicts.wording import summary_of


def write_report(
    result: AuditResult, subject: Subject, *, show_originals: bool, recovered: Recovered | None = None
) -> str:
    """The report's HTML. recovered: pictures that an attack recovered, shown only beside originals, for it may have
    succeeded.
    """
    return (
        environment()
        .get_template("report.html")
        .render(
            result=result,
            strip=strip(subject, show_originals),
            recovered=recovered_rows(recovered.pictures) if recovered is not None and show_originals else [],
            recovered_by=None if recovered is None else recovered.attack,
            recovered_how="" if recovered is None else summary_of(recovered.attack),
            withheld=[] if show_originals else recovering(result.attacks),
            findings=[(finding, _svg(gauge(finding))) for finding in result.summary],
            knows=KNOWS,
            needed=needed(result.verdicts),
            utility=utility(result),
            rests=rests_on(result),
            advice=ADVICE,
            meaning=thresholds_of(result).meaning(),
            plane=_plane(result),
            tables=recognition_tables(result),
            figures=_figures(result),
            images=[m for m in result.measurements if m.by == "images"],
            attacks=attack_rows(result),
            command=command(result),
            setting_text=SETTING_TEXT,
            synthetic=any(evidence.attack in UNPAIRED_ATTACKS for evidence in result.attacks),
            seen=SEEN,
        )
    )


def _svg(drawn: str) -> Markup:
    return Markup(drawn)  # noqa: S704 - made of numbers, and of texts that are escaped where it is drawn


def _plane(result: AuditResult) -> dict[str, Any] | None:
    points = plane_points(result)
    if not points:
        return None
    title = "What is kept and what leaks"
    return {
        "title": title,
        "svg": _svg(plane_figure(points, name="kept-and-leaked", title=title, front=False)),
        "points": points,
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
    return {"title": title, "svg": _svg(drawn), "legend": legend, "note": note}
