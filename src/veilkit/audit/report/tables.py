"""The rows of an audit's tables, as the page and the Markdown file show them."""

from __future__ import annotations

from dataclasses import dataclass

from veilkit.audit.result import DIFFERENCE, SETTINGS, AuditResult, By, Measurement, Recogniser
from veilkit.audit.verdicts.verdict import AttackVerdict
from veilkit.audit.verdicts.wording import described, percent, unproven
from veilkit.types import Evidence, Score

RATES = ("rank-1", "rank-5", "rank-10", "mAP", "mINP")


@dataclass(frozen=True, slots=True)
class AttackRow:
    """An attack, what it does, its verdict where it has one, the scores that a table shows, and its gates in words.

    audit.json holds all other scores. void: whether nothing may be concluded from them.
    """

    evidence: Evidence
    summary: str
    baseline: bool
    verdict: AttackVerdict | None
    scores: tuple[Score, ...]
    gates: str
    void: bool

    @property
    def cost(self) -> str:
        """What it takes its attacker."""
        return str(described(self.evidence.attack).cost)

    @staticmethod
    def took(seconds: float) -> str:
        """A time as people say it."""
        return f"{seconds / 60:.1f} min" if seconds >= 100 else f"{max(seconds, 0.1):.1f} s"

    @property
    def gates_failed(self) -> str:
        """Why its gates failed; empty where they did not."""
        return "; ".join(map(str, self.evidence.invalid))

    @property
    def grade(self) -> str:
        """Its verdict in a word, or that it is none that is graded."""
        return self.verdict.grade if self.verdict else "baseline" if self.baseline else ""

    def chance(self, score: Score) -> str:
        """What blind guessing scores, where that is known."""
        chances = self.evidence.details.get("chance", {})
        return percent(chances[score.metric]) if score.metric in chances else "–"


@dataclass(frozen=True, slots=True)
class RecognitionTable:
    """Rates (columns) in each setting (rows) by one recogniser, and paired differences where there are any."""

    by: By
    who: Recogniser
    rows: tuple[tuple[str, tuple[Measurement, ...]], ...]
    differences: tuple[Score | None, ...]
    metrics: tuple[str, ...] = RATES


def attack_rows(result: AuditResult) -> tuple[AttackRow, ...]:
    """All attacks, those that were made first."""
    verdicts = {each.attack: each for level in result.verdicts for each in level.attacks}
    rows = [
        AttackRow(
            evidence=each,
            summary=described(each.attack).summary,
            baseline=described(each.attack).baseline,
            verdict=verdicts.get(each.attack),
            scores=tuple(score for score in each.scores if described(each.attack).in_tables(score.metric))
            or each.scores[:1],
            gates=_gates(each),
            void=bool(unproven(each)),
        )
        for each in result.attacks
    ]
    return tuple(
        sorted(rows, key=lambda row: (not row.evidence.applicable, row.evidence.level, bool(row.evidence.invalid)))
    )


def recognition_tables(result: AuditResult) -> tuple[RecognitionTable, ...]:
    """By the expert and by the judge, where people could be searched for."""
    tables = []
    takers: tuple[tuple[By, Recogniser], ...] = (("expert", result.expert), ("judge", result.judge))
    for by, who in takers:
        rows = []
        for setting in SETTINGS:
            found = {m.score.metric: m for m in result.measurements if (m.by, m.setting) == (by, setting)}
            if found:
                rows.append((setting, tuple(found[metric] for metric in RATES)))
        differences = tuple(result.score(by, DIFFERENCE, metric) for metric in RATES)
        if rows:
            tables.append(RecognitionTable(by, who, tuple(rows), differences if any(differences) else ()))
    return tuple(tables)


def _gates(evidence: Evidence) -> str:
    gates = evidence.details.get("gates")
    if not gates:
        return ""
    bound = gates["clean bound"]
    possible = "" if not bound else f" (at least {percent(bound)} is possible)"
    chance = "" if gates["chance"] is None else f" (chance {percent(gates['chance'])})"
    return (
        f"{gates['metric']} on {gates['pictures']} pictures: {percent(gates['on originals'])} where nothing is "
        f"protected{possible}, {percent(gates['on noise'])} on noise{chance}"
    )
