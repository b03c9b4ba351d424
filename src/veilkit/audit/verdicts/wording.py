"""Numbers as people read them, and an attack's headline as a sentence."""

from __future__ import annotations

from collections.abc import Iterable

from veilkit.attacks import attack_named
from veilkit.attacks.headline import Described
from veilkit.audit.result import AuditResult, Measurement
from veilkit.types import Evidence, Reason, ReasonCode, Score

_DIGITS = {"SSIM": 3, "PSNR": 2, "AD": 0}  # of scores that are no rates


def percent(rate: float) -> str:
    """A rate as people read it: "12.3 %"; small ones keep a significant digit.

    >>> percent(0.1234), percent(0.0), percent(0.00042), percent(1.0)
    ('12.3 %', '0 %', '0.04 %', '100 %')
    """
    if rate in (0.0, 1.0):
        return f"{rate:.0%}"[:-1] + " %"
    shown = 100 * rate
    return f"{shown:.1f} %" if shown >= 0.1 else f"{shown:.1g} %"


def points(change: float) -> str:
    """A change of a rate in percentage points, with its sign.

    >>> points(-0.123), points(0.04), points(0.0), points(-0.0001)
    ('−12.3', '+4.0', '0.0', '0.0')
    """
    shown = f"{100 * abs(change):.1f}"
    sign = "" if shown == "0.0" else "−" if change < 0 else "+"
    return sign + shown


def interval(score: Score) -> str:
    """The interval in brackets, or nothing."""
    if score.low is None or score.high is None:
        return ""
    return f" (95 % interval {percent(score.low)} to {percent(score.high)})"


def judge_name(result: AuditResult) -> str:
    """Who attacks, to begin a sentence with."""
    kind = "An independent recogniser" if result.independent else "The authorised recogniser itself"
    return f"{kind} ({result.judge.name})"


def described(attack: str) -> type[Described]:
    """What an attack says of itself, or in general terms what can be said of one of another version."""
    known = attack_named(attack)
    if known is not None:
        return known

    class Unknown(Described):
        name = attack
        summary = attack.replace("_", " ")

    return Unknown


def found(evidence: Evidence | None) -> tuple[Score, float | None] | None:
    """The score of an attack's headline, its first where that was not measured, and chance where it is known."""
    if evidence is None or not evidence.scores:
        return None
    metric = described(evidence.attack).headline.metric
    score = next((each for each in evidence.scores if each.metric == metric), evidence.scores[0])
    return score, evidence.details.get("chance", {}).get(score.metric)


def at_least(evidence: Evidence) -> bool:
    """Whether an attack that failed its gates found something for sure all the same.

    Gates guard against good news from weak attackers. What a weak one has found is a leak, and a stronger one finds
    no less. Only who finds people in noise as well, or could not be tried, has shown nothing.
    """
    scored = found(evidence)
    if not evidence.invalid or scored is None or not evidence.details.get("gates"):
        return False
    score, chance = scored
    sound = all(reason.code is not ReasonCode.FOUND_IN_NOISE for reason in evidence.invalid)
    return sound and chance is not None and score.low is not None and score.low > chance


def together(reasons: Iterable[Reason]) -> str:
    """Reasons as one text."""
    return "; ".join(map(str, reasons))


def unproven(evidence: Evidence) -> tuple[Reason, ...]:
    """Why nothing may be concluded from what an attack found, or nothing."""
    return () if at_least(evidence) else evidence.invalid


def no_less(evidence: Evidence) -> str:
    """That a stronger attacker finds as much at least, and why; nothing where that is not so (`at_least`)."""
    if not at_least(evidence):
        return ""
    return f" This attacker was too weak ({together(evidence.invalid)}): a stronger one finds no less."


def sentence(result: AuditResult, evidence: Evidence) -> str:
    """An attack's headline in plain language, with its interval and chance. It must have a score."""
    scored = found(evidence)
    assert scored is not None
    score, chance = scored
    headline = described(evidence.attack).headline
    name = judge_name(result)
    text = headline.sentence.format(
        value=percent(score.value), interval=interval(score), judge=name[0].lower() + name[1:], Judge=name
    )
    text += f". Blind guessing {headline.blind} {percent(chance)}." if chance is not None else "."
    return text + no_less(evidence)


def unbroken(text: str) -> str:
    """The text with numbers and their per cent signs kept on one line."""
    return text.replace(" %", "\u00a0%")


def shown(score: Score) -> str:
    """A score's value in its unit."""
    digits = _digits(score)
    if digits is None:
        return percent(score.value)
    return f"{score.value:.{digits}f}{' dB' if 'PSNR' in score.metric else ''}"


def span(score: Score) -> str:
    """The interval in the same unit, or nothing."""
    if score.low is None or score.high is None:
        return ""
    digits = _digits(score)
    if digits is None:
        return f"{100 * score.low:.1f}–{100 * score.high:.1f}"
    return f"{score.low:.{digits}f}–{score.high:.{digits}f}"


def direction(measurement: Measurement | Score) -> str:
    """What a reader should wish for."""
    if isinstance(measurement, Measurement):
        if measurement.reference:
            return "reference"
        measurement = measurement.score
    return f"{'high' if measurement.higher_is_better else 'low'} is good"


def _digits(score: Score) -> int | None:
    return next((digits for name, digits in _DIGITS.items() if score.metric.startswith(name)), None)
