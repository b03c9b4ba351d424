"""The report: everything a reader is shown, in its order and its words. HTML, Markdown and terminal lay it out."""

from __future__ import annotations

import shlex
from dataclasses import dataclass

from veilkit.attacks import ATTACKS, UNPAIRED_ATTACKS, Need
from veilkit.attacks.headline import Risk
from veilkit.audit.cells.images import FACES_FOUND, POINTS_OFF
from veilkit.audit.options import NO_BUDGET, AuditOptions
from veilkit.audit.report.plane import Point, anchors
from veilkit.audit.report.tables import AttackRow, RecognitionTable, attack_rows, recognition_tables
from veilkit.audit.result import DIFFERENCE, AuditResult, Finding, Measurement
from veilkit.audit.verdicts.remedies import needed
from veilkit.audit.verdicts.verdict import ORDER, Grade, LevelVerdict, Thresholds, over_chance
from veilkit.audit.verdicts.wording import described, percent, shown, span
from veilkit.configs import as_dict, with_settings
from veilkit.display import counted
from veilkit.options import as_words
from veilkit.types import Score

SAME_MODEL = "Judge and expert are one and the same model: the judge's numbers are not independent (see --judge)."

RISKS = (
    "Baseline: blind guessing. Control: the same attack on independent noise, with nothing left to find. Residual: "
    "(found − control) / (1 − control), or over the baseline without a control. The risk "
    "that is left is what these attackers found, and what others may: this does not say that the pictures are "
    "anonymous. Repeat the audit when the method, its settings or the attackers change."
)
ADVICE = (
    "A low number says what these attackers found, not what nobody can find. A high number is proof of a leak.",
    "A leak at one level is there at all levels above; nothing found at one level says nothing about those above.",
)


@dataclass(frozen=True, slots=True)
class Utility:
    """Rank-1 of the authorised expert among protected pictures, among originals, and by chance.

    change: search by search, in [-1, 1]. kept: the share of the originals' rate that is left.
    """

    score: Score
    originals: Score | None
    change: Score | None
    chance: float | None

    @property
    def kept(self) -> float | None:
        """None where the originals were not searched, or gave nothing."""
        return self.score.value / self.originals.value if self.originals and self.originals.value else None


def utility(result: AuditResult) -> Utility | None:
    """What is kept, or None where nobody could be searched for."""
    score = result.score("expert", "protected-protected", "rank-1")
    if score is None:
        return None
    return Utility(
        score,
        result.score("expert", "raw-raw", "rank-1"),
        result.score("expert", DIFFERENCE, "rank-1"),
        next((m.chance for m in result.measurements if m.by == "expert" and m.score.metric == "rank-1"), None),
    )


def faces_measured(result: AuditResult) -> tuple[Measurement, ...]:
    """What is kept of the faces as such."""
    return tuple(each for each in result.measurements if each.score.metric in (FACES_FOUND, POINTS_OFF))


def faces_kept(result: AuditResult) -> tuple[str, ...]:
    """The same in words."""
    said = {
        FACES_FOUND: "{} of the faces are still found",
        POINTS_OFF: "their points are off by {} of the eyes' distance",
    }
    return tuple(said[each.score.metric].format(percent(each.score.value)) for each in faces_measured(result))


@dataclass(frozen=True, slots=True)
class RiskRow:
    """One of the three risks of WP216: the worst attack that asks it, and what it must be compared with.

    figure: how much that attack got, with its interval. naive: what blind guessing gets. control: what the same
    attack gets where nothing is left of the originals. residual: how much of the way from control, or else blind
    guessing, to certainty the attack goes, as Anonymeter has it. All are texts.
    """

    risk: Risk
    asks: str
    grade: Grade
    attack: str
    figure: str
    naive: str
    control: str
    residual: str


_ASKS = {
    Risk.SINGLING_OUT: "can the very original of a protected picture be told among all?",
    Risk.LINKABILITY: "can pictures of one person be brought together?",
    Risk.INFERENCE: "can something else be learned of a person: membership, what is seen of them?",
}


def risk_rows(result: AuditResult) -> tuple[RiskRow, ...]:
    """The risks in the words of WP216, each by its worst attack over all levels."""
    rows = []
    for risk in Risk:
        asked = [each for level in result.verdicts for each in level.attacks if described(each.attack).risk() is risk]
        worst = min(asked, key=lambda each: (ORDER.index(each.grade), -(each.over_chance or 0.0)), default=None)
        if worst is None:
            rows.append(RiskRow(risk, _ASKS[risk], Grade.NOT_ATTACKED, "–", "–", "–", "–", "–"))
            continue
        rate, evidence = worst.decisive, result.evidence(worst.attack)
        gates = {} if evidence is None else evidence.details.get("gates") or {}
        noise = gates.get("on noise") if gates.get("metric") == rate.metric else None
        ends = "" if rate.low is None or rate.high is None else f" ({100 * rate.low:.1f}–{100 * rate.high:.1f})"
        naive, control = ("–" if each is None else percent(each) for each in (rate.chance, noise))
        base = next((each for each in (noise, rate.chance) if each is not None), None)
        residual = "–" if base is None else percent(over_chance(rate.value, base))
        rows.append(RiskRow(risk, _ASKS[risk], worst.grade, worst.attack,
                            f"{rate.metric} {percent(rate.value)}{ends}", naive, control, residual))  # fmt: skip
    return tuple(rows)


def surroundings_text(result: AuditResult) -> str:
    """Who is found by everything but the face; empty where that was not asked."""
    apart = result.surroundings
    if apart is None:
        return ""
    clean = (
        "" if apart.clean is None else f" In the originals' own surroundings it finds {percent(apart.clean.value)}."
    )
    grade = f"{apart.verdict.grade}. " if apart.verdict.grade.graded else ""
    return f"{grade}{apart.verdict.sentences} The judge was {apart.judge.name}.{clean}"


def thresholds_of(result: AuditResult) -> Thresholds:
    """The thresholds that the audit's verdicts were made with."""
    return with_settings(Thresholds(), result.config.get("thresholds", {}))


def rests_on(result: AuditResult) -> dict[str, str]:
    """What the verdicts stand on, by name."""
    judged = [each for level in result.verdicts for each in level.attacks]
    valid = sum(not each.invalid for each in judged)
    missing = sum(len(level.not_attacked) for level in result.verdicts)
    clean = result.score("judge", "raw-raw", "rank-1")
    people = "people not known" if result.people is None else counted(result.people, "person", "people")
    searches = f", {counted(result.queries, 'search', 'searches')}" if result.queries else ""
    judge = f"{result.judge.name}, {'independent of the expert' if result.independent else 'the expert itself'}"
    if clean is not None:
        judge += f"; finds {percent(clean.value)} in the originals"
    return {
        "Data": f"{counted(result.pictures, 'picture', 'pictures')}, {people}{searches}",
        "Judge": judge,
        "Attacks": f"{len(judged)} made, {valid} passed {'its' if valid == 1 else 'their'} gates, {missing} not made"
        + (f"; learners had {updates(result):,} updates" if _learned(result) else "; no attacker learned"),
        "Intervals": f"{100 * result.config['confidence']:g} %, {result.config['bootstrap_draws']:,} draws of "
        f"people; seed {result.config['draw_seed']}",
    }


def updates(result: AuditResult) -> int:
    """Updates that each attacker who learns had, as asked for or as a time allowed; 0 for none."""
    budget = result.config.get("budget") or {}
    return int(result.config.get("learn") or budget.get("updates") or 0)


def _learned(result: AuditResult) -> bool:
    made = [ATTACKS[each.attack] for each in result.attacks if each.applicable and each.attack in ATTACKS]
    return updates(result) > 0 and any(Need.BUDGET in attack.needs for attack in made)


def plane_points(result: AuditResult) -> tuple[Point, ...]:
    """For each level with a verdict what its worst attack gets; the same attack on the originals; and chance."""
    use = utility(result)
    worst = [(level, level.worst) for level in result.verdicts if level.worst is not None]
    if use is None or not worst:
        return ()
    points = (
        Point.of(str(level.level), f"{level.name} attacker ({found.attack})", use.score, found)
        for level, found in worst
    )
    return (*points, *anchors(use.originals, use.chance, [found for _, found in worst]))


@dataclass(frozen=True, slots=True)
class FindingRow:
    """A finding. warning: why nothing may be concluded from it, or nothing. marks: what to compare it with, as text.

    repeated: whether a verdict says it already.
    """

    finding: Finding
    warning: str
    marks: tuple[tuple[str, str], ...]
    repeated: bool

    @classmethod
    def of(cls, finding: Finding, verdicts: tuple[LevelVerdict, ...]) -> FindingRow:
        """The row of a finding."""
        why = f"Nothing may be concluded from this number: {'; '.join(finding.invalid)}." if finding.invalid else ""
        rate = finding.scale == "rate"
        marks = tuple((name, percent(value) if rate else f"{value:.2f}") for name, value in finding.marks.items())
        return cls(finding, why, marks, any(finding.text in verdict.text for verdict in verdicts))


@dataclass(frozen=True, slots=True)
class Report:
    """One audit as a reader is shown it. Parts that are empty were not measured; `result.unmeasured` says why.

    utility_text: in a sentence, also where nothing was measured. needed: what would give more verdicts.
    made, not_made: attacks. synthetic: whether the audit is of a synthetic release, whose pictures have no originals.
    """

    result: AuditResult
    verdicts: tuple[LevelVerdict, ...]
    needed: str
    utility: Utility | None
    utility_text: str
    rests_on: dict[str, str]
    cautions: tuple[str, ...]
    findings: tuple[FindingRow, ...]
    plane: tuple[Point, ...]
    made: tuple[AttackRow, ...]
    not_made: tuple[AttackRow, ...]
    recognition: tuple[RecognitionTable, ...]
    images: tuple[Measurement, ...]
    grades: dict[Grade, str]
    command: str
    synthetic: bool
    surroundings: str
    risks: tuple[RiskRow, ...]

    @property
    def proven(self) -> tuple[FindingRow, ...]:
        """Findings from which something may be concluded."""
        return tuple(each for each in self.findings if not each.warning)

    @property
    def unproven(self) -> tuple[FindingRow, ...]:
        """Numbers that prove nothing."""
        return tuple(each for each in self.findings if each.warning)


def report_of(result: AuditResult) -> Report:
    """The report of an audit."""
    rows, use = attack_rows(result), utility(result)
    return Report(
        result=result,
        verdicts=result.verdicts,
        needed=needed(result.verdicts),
        utility=use,
        utility_text=utility_text(result, use),
        rests_on=rests_on(result),
        cautions=() if result.independent else (SAME_MODEL,),
        findings=tuple(FindingRow.of(each, result.verdicts) for each in result.summary),
        plane=plane_points(result),
        made=tuple(row for row in rows if row.evidence.applicable),
        not_made=tuple(row for row in rows if not row.evidence.applicable),
        recognition=recognition_tables(result),
        images=tuple(each for each in result.measurements if each.by == "images"),
        grades=thresholds_of(result).meaning(),
        command=command(result),
        surroundings=surroundings_text(result),
        risks=risk_rows(result),
        synthetic=any(evidence.attack in UNPAIRED_ATTACKS for evidence in result.attacks),
    )


def utility_text(result: AuditResult, use: Utility | None) -> str:
    """What is kept in a sentence, or why that is not known."""
    if use is None:
        if faces := faces_kept(result):
            return f"{' and '.join(faces).capitalize()}."
        why = result.unmeasured[0].why if result.unmeasured else "people could not be searched for"
        return f"Not measured: {why}."
    interval = f" (95 % interval {span(use.score)} %)" if span(use.score) else ""
    originals = "" if use.originals is None else f"; {shown(use.originals)} among the originals"
    chance = "" if use.chance is None else f"; {percent(use.chance)} by chance"
    kept = "" if use.kept is None else f" That is {percent(use.kept)} of what the originals allow."
    faces = faces_kept(result)
    kept += f" Of the faces as such, {' and '.join(faces)}." if faces else ""
    return (
        f"The authorised expert ({result.expert.name}) finds the right person among protected pictures "
        f"{shown(use.score)} of the time{interval}{originals}{chance}.{kept}"
    )


def command(result: AuditResult) -> str:
    """Experts that are files or were given as objects go by their names, and folders by what they hold."""
    words = ["veilkit", "audit", "ORIGINALS", "PROTECTED", "--expert", result.expert.name]
    words += ["--judge", result.judge.name]
    if result.release is not None and result.release["key_commitment"] and result.release["names"] == "pseudonyms":
        words += ["--key", "KEY"]
    facts = dict(result.config)
    if "budget" in facts:
        words += ["--budget", f"{facts['budget']['seconds']:g}s"]
        facts.pop("learn", None)
    elif not facts.keys() & {"learn", "attacks"}:
        words += ["--budget", NO_BUDGET]  # on the command line that is not the default
    words += as_words(AuditOptions, facts)
    if facts.get("thresholds", as_dict(Thresholds())) != as_dict(Thresholds()):
        words += ["--thresholds", "THRESHOLDS"]
    return shlex.join(words)
