"""Two folders to a report: what an attacker gets from the protected pictures, and what a user keeps."""

from __future__ import annotations

from veilkit.audit.report.compare_report import write_comparison
from veilkit.audit.result import AuditResult, Measurement, read_audit
from veilkit.audit.run import run_audit
from veilkit.audit.verdicts.thresholds import Thresholds

audit = run_audit

__all__ = ["AuditResult", "Measurement", "Thresholds", "audit", "read_audit", "run_audit", "write_comparison"]
