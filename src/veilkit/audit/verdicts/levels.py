"""The verdict on each threat level: what its attackers got, what nobody tried, and what proves nothing."""

from __future__ import annotations

from veilkit.attacks.intervals import CONFIDENCE
from veilkit.audit.result import AuditResult
from veilkit.audit.verdicts.remedies import by_need, for_invalid, for_missing, listed, why_missing
from veilkit.audit.verdicts.verdict import (
    ORDER,
    AttackVerdict,
    Grade,
    LevelVerdict,
    Rate,
    Thresholds,
    grade,
    over_chance,
)
from veilkit.audit.verdicts.wording import described, found, interval, percent, sentence, together, unproven
from veilkit.metrics import clopper_pearson
from veilkit.types import Evidence, Level, Score

_PERSON = "person rank-1"
_PAIRED = "paired choice"
_FEW = 5  # hits below which bootstrap draws are too much alike


def level_verdicts(result: AuditResult, thresholds: Thresholds) -> tuple[LevelVerdict, ...]:
    """One verdict for each level, L0 first."""
    verdicts: list[LevelVerdict] = []
    for level in Level:
        below = min((each.grade for each in verdicts), key=ORDER.index, default=Grade.NOT_ATTACKED)
        tried = [each for each in result.attacks if each.level is level and not described(each.attack).baseline]
        verdicts.append(_verdict(result, level, tried, below, thresholds))
    return tuple(verdicts)


def attack_verdict(result: AuditResult, evidence: Evidence, thresholds: Thresholds) -> AttackVerdict:
    """The verdict on one attack that was made."""
    scored = found(evidence)
    assert scored is not None
    score, chance = scored
    high, choices = _room(score, _people(result, evidence)), None
    if unproven(evidence):
        found_grade = Grade.NO_VERDICT
    elif chance is None:
        found_grade = Grade.UNCLEAR
    else:
        found_grade = grade(score.value, score.low, high, chance, thresholds)
        found_grade, choices = _with_choices(found_grade, evidence, thresholds)
    gates = evidence.details.get("gates") or {}
    same = gates.get("metric") == score.metric and chance is not None
    return AttackVerdict(
        attack=evidence.attack,
        grade=found_grade,
        text=sentence(result, evidence) + _person(evidence) + _choices(evidence),
        metric=score.metric,
        value=score.value,
        low=score.low,
        high=score.high if evidence.invalid else high,
        chance=chance,
        over_chance=_over(score.value, chance),
        over_chance_low=_over(score.low, chance),
        over_chance_high=_over(high, chance),
        unprotected=_over(gates["on originals"], gates.get("chance")) if same else None,
        invalid=tuple(map(str, evidence.invalid)),
        counts=described(evidence.attack).tells_identity,
        choices=choices,
    )


def _verdict(
    result: AuditResult, level: Level, tried: list[Evidence], below: Grade, thresholds: Thresholds
) -> LevelVerdict:
    made = [each for each in tried if each.applicable and each.scores]
    attacks = sorted(
        (attack_verdict(result, each, thresholds) for each in made),
        key=lambda each: (ORDER.index(each.grade), -(each.over_chance or 0.0)),
    )
    missing = {each.attack: each.missing for each in tried if not each.applicable}
    counted = [each for each in attacks if each.counts]
    worst = min((each.grade for each in counted), key=ORDER.index, default=Grade.NOT_ATTACKED)
    failed = [each for each in made if unproven(each)]
    needs = [(each.attack, for_invalid(each)) for each in made if each.invalid]
    needs += [(attack, for_missing(attack, reasons)) for attack, reasons in missing.items()]
    needs += [(each.attack, "more people") for each in counted if each.grade is Grade.UNCLEAR]
    if worst.graded:
        text = _grounds(attacks, worst)
    elif worst is Grade.NO_VERDICT:
        text = f"No verdict at {level}: {listed((each.attack, together(each.invalid)) for each in failed)}."
    else:
        text = f"Not attacked at {level}: {why_missing(missing) or 'there is no such attack'}."
    aside = []
    if worst.graded and failed:
        names = ", ".join(each.attack for each in failed)
        aside.append(f"{len(failed)} of {len(made)} attacks gave no verdict ({names}).")
    if worst.graded and (untried := len(missing)):
        aside.append("1 other was not made." if untried == 1 else f"{untried} others were not made.")
    if level is Level.L3 and (kept := result.score("expert", "protected-protected", "rank-1")) is not None:
        aside.append(
            f"Who holds the authorised recogniser ({result.expert.name}) also searches as its user does, who "
            f"finds the right person {percent(kept.value)} of the time."
        )
    if below.leak and ORDER.index(below) < ORDER.index(worst):
        aside.append(f"At least “{below}”, as at lower levels.")
    return LevelVerdict(
        level,
        worst,
        text,
        " ".join(aside),
        by_need(needs),
        tuple(attacks),
        {attack: together(reasons) for attack, reasons in missing.items()},
    )


def _grounds(attacks: list[AttackVerdict], worst: Grade) -> str:
    """The sentence of the attack that decided, and where nothing was found what cannot be ruled out."""
    decided = next(each for each in attacks if each.counts and each.grade is worst)
    if worst is Grade.NOTHING_FOUND and decided.high is not None:
        highest = max((each.high or 0.0) for each in attacks if each.counts and each.grade is worst)
        return f"{decided.text} These attackers found nothing beyond chance; up to {percent(highest)} is possible."
    if worst is Grade.UNCLEAR:
        room = "" if decided.high is None else f": up to {percent(decided.high)} is possible"
        return f"{decided.text} With so few people that is not surely different from chance{room}."
    return decided.text


def _person(evidence: Evidence) -> str:
    """In recovered pictures, also how often the person is found by other pictures."""
    score = next((each for each in evidence.scores if each.metric == _PERSON), None)
    chance = evidence.details.get("chance", {}).get(_PERSON)
    if score is None or chance is None:
        return ""
    return (
        f" By other pictures of theirs the right person is found {percent(score.value)} of the time (chance "
        f"{percent(chance)})."
    )


def _paired(evidence: Evidence) -> tuple[Score, float] | None:
    """How often the right one of two candidates was preferred, where that was asked, and chance."""
    score = next((each for each in evidence.scores if each.metric == _PAIRED), None)
    chance = evidence.details.get("chance", {}).get(_PAIRED)
    return None if score is None or chance is None else (score, chance)


def _paired_grade(evidence: Evidence, thresholds: Thresholds) -> Grade:
    """Right choices show a leak that finds nobody among many yet. By themselves they never count as broken."""
    if (paired := _paired(evidence)) is None or paired[0].low is None or paired[0].low <= paired[1]:
        return Grade.NOT_ATTACKED
    return Grade.SERIOUS if over_chance(paired[0].value, paired[1]) >= thresholds.broken else Grade.SLIGHT


def _with_choices(by_headline: Grade, evidence: Evidence, thresholds: Thresholds) -> tuple[Grade, Rate | None]:
    """The worse of the two grades, and the choices where theirs is."""
    by_choices, paired = _paired_grade(evidence, thresholds), _paired(evidence)
    if paired is None or ORDER.index(by_choices) >= ORDER.index(by_headline):
        return by_headline, None
    score, chance = paired
    return by_choices, Rate(score.metric, score.value, score.low, score.high, chance)


def _choices(evidence: Evidence) -> str:
    if (paired := _paired(evidence)) is None:
        return ""
    score, chance = paired
    return (
        f" Of a right and a wrong candidate it prefers the right one {percent(score.value)} of the time"
        f"{interval(score)}; blind guessing {percent(chance)}."
    )


def _room(score: Score, people: int) -> float | None:
    """The upper end of the interval. Where hits are few the bootstrap's is too narrow, and the exact one is taken.

    With one hit among 20 people most draws hold none or two, and all lie near it; but 25 % cannot be excluded.
    """
    hits = round(score.value * people)
    if score.high is None or hits >= _FEW:
        return score.high
    return max(score.high, clopper_pearson(hits, people, confidence=CONFIDENCE).high)


def _people(result: AuditResult, evidence: Evidence) -> int:
    """About how many people an attack was asked about: an attacker who learned was asked about some of them only."""
    everybody = result.people or result.pictures
    asked = int(evidence.details.get("pictures attacked", result.pictures))
    return max(1, round(everybody * min(1.0, asked / max(1, result.pictures))))


def _over(rate: float | None, chance: float | None) -> float | None:
    return None if rate is None or chance is None else over_chance(rate, chance)
