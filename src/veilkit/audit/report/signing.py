"""sign.html: one page for whoever answers for a release, to be filled in, printed and signed."""

from __future__ import annotations

import datetime
from collections.abc import Mapping
from typing import Any

from veilkit.audit.report.html import environment
from veilkit.audit.report.model import Report, report_of
from veilkit.audit.report.terminal import worst_first
from veilkit.audit.result import AuditResult
from veilkit.audit.verdicts.wording import percent
from veilkit.display import counted

_YEAR = 365  # days until the next test, where nobody says another date
_NAMED = 6  # attacks that were not made


def write_signing(result: AuditResult, counts: Mapping[str, int] | None) -> str:
    """The page. counts: of the release's ledger, as `ledger_counts` has them; None where it is not at hand."""
    report, today = report_of(result), datetime.datetime.now(datetime.UTC).date()
    return (
        environment()
        .get_template("sign.html")
        .render(
            result=result,
            report=report,
            pictures=_pictures(result, counts),
            keys=_keys(result.release),
            rows=[(each, _found(each)) for each in worst_first(result)],
            untested=_untested(report),
            today=today.isoformat(),
            later=(today + datetime.timedelta(days=_YEAR)).isoformat(),
        )
    )


def _pictures(result: AuditResult, counts: Mapping[str, int] | None) -> dict[str, str]:
    known = {
        "protected": str(result.release["files"] if result.release else result.protected.pictures),
        "refused": "not known: the ledger of the release is not at hand",
        "with something doubtful": "not known: the ledger of the release is not at hand",
    }
    if counts is not None:
        known["refused"], known["with something doubtful"] = str(counts["refused"]), str(counts["doubtful"])
    people = "people not known" if result.people is None else counted(result.people, "person", "people")
    return {**known, "attacked in this audit": f"{result.pictures:,}, {people}"}


def _keys(release: Mapping[str, Any] | None) -> dict[str, str]:
    """Which secrets there are: what a manifest says of them."""
    if release is None:
        return {"key": "not known: the release has no manifest"}
    if release.get("seed") is not None:
        return {"key": "none: made under a public seed, anybody can make it again"}
    keys = {}
    if release.get("key_commitment"):
        keys["key of the release"] = f"commitment {release['key_commitment'][:16]}"
    if (sealed := release.get("sealed_recipients")) is not None:
        keys["keys to the sealed originals"] = counted(sealed, "recipient", "recipients")
    return keys or {"key": "none"}


def _found(verdict: Any) -> str:
    worst = verdict.worst
    if worst is None:
        return "–"
    rate = worst.decisive
    blind = "" if rate.chance is None else f"; blind guessing {percent(rate.chance)}"
    return f"{worst.attack}: {'at least ' if worst.invalid else ''}{percent(rate.value)}{blind}"


def _untested(report: Report) -> str:
    """What nobody tried, and what could not be measured."""
    names = [row.evidence.attack for row in report.not_made]
    more = f" and {len(names) - _NAMED} others" if len(names) > _NAMED else ""
    attacks = f"Attacks not made: {', '.join(names[:_NAMED])}{more}." if names else "All known attacks were made."
    return f"{attacks} Attackers with more time, better recognisers or knowledge of the people may find more."
