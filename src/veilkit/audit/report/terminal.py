"""The report as the command prints it: alarms and verdicts, then what is kept, then what proves nothing."""

from __future__ import annotations

from collections.abc import Iterator

from veilkit.audit.report.model import report_of
from veilkit.audit.result import AuditResult


def lines(result: AuditResult) -> Iterator[str]:
    """Lines of text."""
    report = report_of(result)
    for alarm in result.alarms:
        yield f"ALARM ({alarm.name}): {alarm.text}"
    for verdict in report.verdicts:
        grade = f"{verdict.grade.upper()}. " if verdict.grade.graded else ""  # else the text begins with it
        yield f"{verdict.level} ({verdict.name}): {grade}{verdict.sentences}"
    for row in report.proven:
        if not row.repeated:
            yield f"{row.finding.role.value}: {row.finding.text}"
    if report.needed:
        yield f"For more verdicts: {report.needed}."
    for row in report.unproven:
        yield f"{row.finding.role.value} (INVALID: {'; '.join(row.finding.invalid)}): {row.finding.text}"
    for each in result.unmeasured:
        yield f"Not measured: {each.what}: {each.why}"
    for note in result.notes:
        yield f"Note: {note}"
