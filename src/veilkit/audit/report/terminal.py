"""An audit's result as the command says it: alarms and verdicts, then what is kept, then what proves nothing."""

from __future__ import annotations

from collections.abc import Iterator

from veilkit.audit.result import AuditResult
from veilkit.audit.verdicts.remedies import needed
from veilkit.audit.verdicts.verdict import KNOWS


def told(result: AuditResult) -> Iterator[str]:
    """Lines of text."""
    for alarm in result.alarms:
        yield f"ALARM ({alarm.name}): {alarm.text}"
    for verdict in result.verdicts:
        grade = f"{verdict.grade.upper()}. " if verdict.grade.graded else ""  # else the text begins with it
        said = " ".join(filter(None, (verdict.text, verdict.aside)))
        yield f"{verdict.level} ({KNOWS[verdict.level][0]}): {grade}{said}"
    for finding in result.summary:
        if not finding.invalid and not any(finding.text in verdict.text for verdict in result.verdicts):
            yield f"{finding.role.value}: {finding.text}"
    if more := needed(result.verdicts):
        yield f"For more verdicts: {more}."
    for finding in result.summary:
        if finding.invalid:
            yield f"{finding.role.value} (INVALID: {'; '.join(finding.invalid)}): {finding.text}"
    for each in result.unmeasured:
        yield f"Not measured: {each.what}: {each.why}"
    for note in result.notes:
        yield f"Note: {note}"
