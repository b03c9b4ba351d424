"""Audit a folder: what is asked is checked first, and only then is anything heavy imported."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from veilkit.audit.options import AuditOptions
from veilkit.options import takes

if TYPE_CHECKING:
    from veilkit.audit.result import AuditResult

RESULT, REPORT, TEXT, SIGNING = "audit.json", "report.html", "audit.md", "sign.html"


@takes(AuditOptions)
def run_audit(originals: str | Path, protected: str | Path, **options: Any) -> AuditResult:
    """Measure a folder of protected pictures, whoever made it, and write audit.json, report.html, audit.md and
    sign.html.

    The expert's numbers are utility, those of the independent judge are privacy. A stopped audit goes on when it is
    called again: features are kept in OUT/cache and what attacks found in OUT/cells. All of it is its owner's alone
    (0700, files 0600).
    """
    return make_audit(AuditOptions.of(originals, protected, **options))


def make_audit(options: AuditOptions) -> AuditResult:
    """What `run_audit` does, for options as one object."""
    options.check()
    from veilkit.audit.measure import measure

    if options.videos:
        from veilkit.audit.inputs.videos import faces_of_videos

        with faces_of_videos(options) as crops:
            return measure(crops)
    return measure(options)
