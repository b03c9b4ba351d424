"""The findings in plain language: what an attacker gets and what a user keeps."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from veilkit.audit.result import DIFFERENCE, AuditResult, Finding
from veilkit.types import Evidence, Role, Score

SEEN = "What the eye still sees"
_MIXED = "who knows how pictures were mixed, but not the key,"
_UNDOING = (
    ("jigsaw", "Patches put back together", _MIXED, "puts the pictures' patches back together"),
    ("unmix", "Blended pictures taken apart", _MIXED, "takes the blended pictures apart again"),
    ("recovery", "Pictures recovered", "whose network learned from other people's pairs", "recovers the originals"),
    ("stolen_decoder", "Pictures decoded", "who stole the secret decoder", "recovers the originals with it"),
)


def summarise(result: AuditResult) -> AuditResult:
    """The result with its findings, the attacker's first."""
    findings = (
        *(_undone(result, *each) for each in _UNDOING),
        _stock(result), _linkage(result), _own_original(result), _utility(result), _similarity(result),
    )  # fmt: skip
    return replace(result, summary=tuple(each for each in findings if each is not None))


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


def finding(
    title: str, score: Score, text: str, marks: dict[str, float | None], invalid: tuple[str, ...] = ()
) -> Finding:
    """A rate as a finding; marks that are None are left out."""
    return Finding(
        title=title,
        role=score.role,
        figure=percent(score.value),
        text=text,
        value=score.value,
        low=score.low,
        high=score.high,
        marks={name: value for name, value in marks.items() if value is not None},
        invalid=invalid,
    )


def headline(evidence: Evidence | None, metric: str) -> tuple[Score, float] | None:
    """An attack's score and what chance would score, or None where it was not made."""
    if evidence is None:
        return None
    for score in evidence.scores:
        if score.metric == metric:
            return score, float(evidence.details["chance"][metric])
    return None


def _undone(result: AuditResult, attack: str, title: str, who: str, what: str) -> Finding | None:
    """An attack that undoes the protection; there is nothing to tell where it does not apply."""
    evidence = result.evidence(attack)
    found = headline(evidence, "rank-1")
    if evidence is None or found is None:
        return None
    score, chance = found
    text = (
        f"An attacker {who} {what}; in {percent(score.value)} of them"
        f"{interval(score)} {judge_name(result)[0].lower()}{judge_name(result)[1:]} then finds the very original. "
        f"Blind guessing finds {percent(chance)}."
    )
    if not evidence.invalid and score.low is not None and score.low > chance:
        text += " This protection is not safe."
    return finding(title, score, text, {"chance": chance}, evidence.invalid)


def _stock(result: AuditResult) -> Finding | None:
    evidence = result.evidence("stock_recogniser")
    found = headline(evidence, "rank-1")
    if evidence is None or found is None:
        return None
    score, chance = found
    clean = result.score("judge", "raw-raw", "rank-1")
    text = (
        f"{judge_name(result)} that sees only the protected pictures finds the right person "
        f"{percent(score.value)} of the time{interval(score)}. Blind guessing finds {percent(chance)}"
        + (f"; on the originals it finds {percent(clean.value)}." if clean else ".")
    )
    marks = {"chance": chance, "originals": clean.value if clean else None}
    return finding("People told apart in the release", score, text, marks, evidence.invalid)


def _linkage(result: AuditResult) -> Finding | None:
    evidence = result.evidence("linkage")
    found = headline(evidence, "rank-1")
    if evidence is None or found is None:
        return None
    score, chance = found
    clean = result.score("judge", "raw-raw", "rank-1")
    text = (
        f"{judge_name(result)} that holds other, raw pictures of these people names the person in a protected one "
        f"{percent(score.value)} of the time{interval(score)}. Blind guessing names {percent(chance)}."
    )
    marks = {"chance": chance, "originals": clean.value if clean else None}
    return finding("Protected pictures linked to people", score, text, marks, evidence.invalid)


def _own_original(result: AuditResult) -> Finding | None:
    evidence = result.evidence("own_original")
    found = headline(evidence, "rank-1")
    if evidence is None or found is None:
        return None
    score, chance = found
    text = (
        f"{judge_name(result)} that holds all originals finds the very one that a protected picture was made "
        f"from {percent(score.value)} of the time{interval(score)}. "
        f"Blind guessing finds {percent(chance)}."
    )
    return finding("Protected pictures linked to their originals", score, text, {"chance": chance}, evidence.invalid)


def _utility(result: AuditResult) -> Finding | None:
    score = result.score("expert", "protected-protected", "rank-1")
    if score is None:
        return None
    clean = result.score("expert", "raw-raw", "rank-1")
    change = result.score("expert", DIFFERENCE, "rank-1")
    text = (
        f"The authorised recogniser ({result.expert.name}) finds the right person among protected pictures "
        f"{percent(score.value)} of the time{interval(score)}"
        + (f"; among the originals, {percent(clean.value)}." if clean else ".")
    )
    if change is not None and change.low is not None and change.high is not None:
        text += (
            f" Search by search that is a change of {points(change.value)} points "
            f"(95 % interval {points(change.low)} to {points(change.high)})."
        )
    chance = next((m.chance for m in result.measurements if m.by == "expert" and m.score.metric == "rank-1"), None)
    return finding(
        "Still of use to its owner", score, text, {"chance": chance, "originals": clean.value if clean else None}
    )


def _similarity(result: AuditResult) -> Finding | None:
    score = result.score("images", "protected to original", "SSIM")
    if score is None:
        return None
    evidence = result.evidence("mean_image")
    mean = next((s.value for s in evidence.scores if s.metric == "SSIM"), None) if evidence else None
    text = (
        f"The structural similarity (SSIM) of protected pictures to their originals is {score.value:.2f}; 1 is equal."
    )
    if mean is not None:
        text += f" One and the same mean picture, which shows nobody, reaches {mean:.2f}."
    return seen(score, text, {} if mean is None else {"mean picture": mean})


def seen(score: Score, text: str, marks: Mapping[str, float]) -> Finding:
    """What the eye still sees, by a similarity whose negative values say no more than 0."""
    return Finding(
        title=SEEN,
        role=Role.PRIVACY,
        figure=f"{score.value:.2f}",
        text=text,
        value=max(0.0, score.value),
        low=None if score.low is None else max(0.0, score.low),
        high=None if score.high is None else max(0.0, score.high),
        marks={name: max(0.0, value) for name, value in marks.items()},
    )
