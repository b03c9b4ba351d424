"""Two folders to a report: what an attacker gets from the protected pictures, and what a user keeps."""

from __future__ import annotations

from typing import TYPE_CHECKING

from veilkit.lookup import lazy_names

if TYPE_CHECKING:
    from veilkit.audit.options import AuditOptions
    from veilkit.audit.report.compare_report import write_comparison
    from veilkit.audit.result import AuditResult, Measurement, read_audit
    from veilkit.audit.run import run_audit
    from veilkit.audit.verdicts.verdict import Thresholds

__all__ = [
    "AuditOptions",
    "AuditResult",
    "Measurement",
    "Thresholds",
    "read_audit",
    "run_audit",
    "write_comparison",
]

__getattr__ = lazy_names(
    __name__,
    {
        "options": "AuditOptions",
        "report.compare_report": "write_comparison",
        "result": "AuditResult Measurement read_audit",
        "run": "run_audit",
        "verdicts.verdict": "Thresholds",
    },
)
