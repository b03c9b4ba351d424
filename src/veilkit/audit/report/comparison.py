"""Several audits side by side: what each release keeps and leaks, and which no other beats.

Only audits of the same originals, by the same judge, can be compared; the first one sets them. What releases keep may
be said by different experts, each its own method's; then no difference of it is given. Leaks are compared attack by
attack, and a level by the worst of the attacks that are valid in all of them: an audit that tried more must not look
worse for it.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from veilkit.attacks import ATTACKS
from veilkit.audit.cells.differences import tallied_difference
from veilkit.audit.report.model import Utility, thresholds_of, updates, utility
from veilkit.audit.report.plane import pareto_front
from veilkit.audit.result import AuditResult, read_audit
from veilkit.audit.verdicts.levels import level_verdicts
from veilkit.audit.verdicts.verdict import AttackVerdict, LevelVerdict, Thresholds
from veilkit.configs import differing
from veilkit.errors import DataError, UsageError
from veilkit.types import Level, Score

RESULT = "audit.json"
_PAIRED = {
    "utility": ("expert", "protected-protected"),
    **{name: ("judge", "-".join(attack.searches)) for name, attack in ATTACKS.items() if attack.searches is not None},
}
"""What audits keep person by person, so that it can be compared search by search."""


@dataclass(frozen=True, slots=True)
class Compared:
    """One audit. label: a number, by which figures name it. apart: why it cannot be compared with the first.

    differences: rank-1 minus the first's on the same searches, of "utility" and of attacks, where both are valid.
    """

    label: str
    name: str
    method: str
    result: AuditResult
    verdicts: tuple[LevelVerdict, ...]
    utility: Utility | None
    apart: tuple[str, ...]
    differences: dict[str, Score]

    def attack(self, name: str) -> AttackVerdict | None:
        """The verdict on an attack, or None where it was not made."""
        return next((each for level in self.verdicts for each in level.attacks if each.attack == name), None)


@dataclass(frozen=True, slots=True)
class LevelComparison:
    """A level in all audits that can be compared. attacks: valid in all. left_out: valid in some only.

    worst: for each audit that has a utility, by label, the worst of `attacks`. front: labels that no other beats.
    """

    level: Level
    attacks: tuple[str, ...]
    left_out: tuple[str, ...]
    worst: dict[str, AttackVerdict]
    front: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Comparison:
    """Everything that a comparison found."""

    thresholds: Thresholds
    audits: tuple[Compared, ...]
    levels: tuple[LevelComparison, ...]
    notes: tuple[str, ...]

    @property
    def together(self) -> tuple[Compared, ...]:
        """The audits that can be compared."""
        return tuple(each for each in self.audits if not each.apart)


def read_audits(paths: Sequence[Path]) -> list[tuple[str, AuditResult]]:
    """Audits of folders or audit.json files, each with a name that no other has."""
    if len(paths) < 2:
        raise UsageError(
            f"a comparison needs at least two audits, but got {len(paths)}: give folders that `veilkit audit` wrote. "
            "To audit a folder that is called “compare”, write ./compare"
        )
    found = []
    for path in paths:
        file = path / RESULT if path.is_dir() else path
        if not file.is_file():
            raise DataError(f"there is no audit at {path}: expected a folder with {RESULT}, or that file itself")
        found.append((file.resolve().parent.name.removesuffix(".audit"), read_audit(file)))
    named = list(zip(_methods([result for _, result in found]), found, strict=True))
    names = [method or folder for method, (folder, _) in named]
    names = [name if names.count(name) == 1 else f"{name} ({folder})" if method else name
             for name, (method, (folder, _)) in zip(names, named, strict=True)]  # fmt: skip
    return [(name if names.count(name) == 1 else f"{name} ({place})", result)
            for place, (name, (_, result)) in enumerate(zip(names, found, strict=True), 1)]  # fmt: skip


def _methods(results: Sequence[AuditResult]) -> list[str]:
    """What made each release, with the settings that tell it from others by that method; empty where not stated."""
    releases = [each.release or {} for each in results]
    names = []
    for each in releases:
        alike = [other.get("config") or {} for other in releases if other.get("method") == each.get("method")]
        own = each.get("config") or {}
        odd = [name for name in own if any(other.get(name) != own[name] for other in alike)]
        names.append(" ".join((str(each.get("method") or ""), *(f"{name}={own[name]}" for name in odd))).strip())
    return names


def compare(audits: Sequence[tuple[str, AuditResult]], thresholds: Thresholds | None = None) -> Comparison:
    """Compare named audits. thresholds: of all verdicts, which are made anew; by default the first audit's."""
    graded_by = thresholds_of(audits[0][1]) if thresholds is None else thresholds
    rows: list[Compared] = []
    for place, (name, result) in enumerate(audits, 1):
        first = audits[0][1]
        row = Compared(
            label=str(place),
            name=name,
            method=str(result.release.get("method")) if result.release else "not stated",
            result=result,
            verdicts=level_verdicts(result, graded_by),
            utility=utility(result),
            apart=() if place == 1 else not_comparable(first, result),
            differences={},
        )
        if rows and not row.apart:
            row = dataclasses.replace(row, differences=_differences(rows[0], row))
        rows.append(row)
    together = [row for row in rows if not row.apart]
    levels = tuple(_level(level, together) for level in Level) if len(together) > 1 else ()
    return Comparison(graded_by, tuple(rows), levels, tuple(_notes(rows)))


def not_comparable(first: AuditResult, other: AuditResult) -> tuple[str, ...]:
    """Why the numbers of two audits do not belong side by side; empty where they do."""
    counts = first.originals.pictures, other.originals.pictures
    fewer = "" if counts[0] == counts[1] else f", or not all of them ({counts[0]} and {counts[1]} pictures)"
    checks = {
        f"other originals{fewer}": first.originals.sha256 != other.originals.sha256,
        "another judge": (first.judge.sha256, first.judge.flip) != (other.judge.sha256, other.judge.flip),
        "other searches": (first.queries, first.gallery, first.cameras_used)
        != (other.queries, other.gallery, other.cameras_used),
    }
    return tuple(reason for reason, differs in checks.items() if differs)


def _differences(first: Compared, other: Compared) -> dict[str, Score]:
    one, two = first.result.tallies, other.result.tallies
    found = {}
    for what, (by, setting) in _PAIRED.items():
        valid = (
            _one_expert(first, other)
            if what == "utility"
            else all(_valid(each.attack(what)) for each in (first, other))
        )
        if one is not None and two is not None and valid:
            difference = tallied_difference(two, one, by, setting)  # type: ignore[arg-type]
            if difference is not None:
                found[what] = difference
    return found


def _one_expert(first: Compared, other: Compared) -> bool:
    """Whether the same recogniser says what is kept of both."""
    one, two = first.result.expert, other.result.expert
    return (one.sha256, one.flip) == (two.sha256, two.flip)


def _level(level: Level, audits: Sequence[Compared]) -> LevelComparison:
    valid = [{each.attack: each for verdict in audit.verdicts if verdict.level is level for each in verdict.attacks
              if each.counts and _valid(each)} for audit in audits]  # fmt: skip
    shared = sorted(set.intersection(*(set(each) for each in valid)))
    some = sorted(set.union(*(set(each) for each in valid)) - set(shared))
    worst = {
        audit.label: max((attacks[name] for name in shared), key=lambda each: each.over_chance or 0.0)
        for audit, attacks in zip(audits, valid, strict=True)
        if shared and audit.utility is not None
    }
    kept = {audit.label: audit.utility.score.value for audit in audits if audit.utility is not None}
    labels = list(worst)
    front = pareto_front([(kept[label], worst[label].over_chance or 0.0) for label in labels])
    return LevelComparison(level, tuple(shared), tuple(some), worst, tuple(labels[place] for place in front))


def _valid(verdict: AttackVerdict | None) -> bool:
    return verdict is not None and not verdict.invalid and verdict.over_chance is not None


def _other_settings(first: Compared, other: Compared) -> list[str]:
    """In which settings two releases of one method differ."""
    one, two = first.result.release, other.result.release
    if one is None or two is None or one.get("method") != two.get("method"):
        return []
    settings = [each.get("config") for each in (one, two)]
    if not all(isinstance(each, Mapping) for each in settings):
        return []
    which = [f"{name} {b} and {a}" for name, (a, b) in differing(*settings).items()]  # type: ignore[arg-type]
    if not which:
        return []
    return [f"{other.name} and {first.name} were made by {other.method} with other settings: {', '.join(which)}"]


def _notes(rows: Sequence[Compared]) -> list[str]:
    notes = [f"{row.name} is not comparable with {rows[0].name}: {', '.join(row.apart)}" for row in rows if row.apart]
    for row in rows[1:]:
        if row.apart:
            continue
        if not _one_expert(rows[0], row):
            one, two = (each.result.expert.name for each in (row, rows[0]))
            notes.append(f"what {row.name} keeps is judged by {one}, what {rows[0].name} keeps by {two}")
        elif "utility" not in row.differences:
            notes.append(
                f"{row.name} is not compared search by search: its audit or the first's keeps no searches of these "
                "people in the same order; audit both again"
            )
        notes += _other_settings(rows[0], row)
        for what, (one, other) in {
            "updates of attackers who learn": [updates(each.result) or "none" for each in (row, rows[0])],
            "weights that a retrained recogniser starts from": [
                each.result.config.get("start_sha256", "none") for each in (row, rows[0])
            ],
            "seed": [each.result.config.get("draw_seed") for each in (row, rows[0])],
        }.items():
            if one != other:
                notes.append(f"{row.name} and {rows[0].name} differ in the {what}: {one} and {other}")
    if not all(row.result.independent for row in rows):
        notes.append("in some of these audits judge and expert are one and the same model")
    return notes
