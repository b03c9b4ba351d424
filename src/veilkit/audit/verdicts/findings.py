"""The findings in plain language: what an attacker gets and what a user keeps."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from veilkit.audit.result import DIFFERENCE, OTHER_CLASS, SAME_CLASS, AuditResult, Finding
from veilkit.audit.verdicts.wording import (
    at_least,
    described,
    found,
    interval,
    percent,
    points,
    sentence,
    unproven,
)
from veilkit.types import Evidence, Reason, ReasonCode, Role, Score


def summarise(result: AuditResult) -> AuditResult:
    """The result with its findings: what can be concluded first, and of that the attacker's."""
    found = (*_attackers(result), _utility(result), _similarity(result))
    return replace(result, summary=conclusive_first(each for each in found if each is not None))


def _attackers(result: AuditResult) -> Iterator[Finding]:
    """A finding for each attack that was made, or for all that ask one question; those first that undo most."""
    made = [
        each for each in result.attacks if each.applicable and each.scores and not described(each.attack).baseline
    ]
    answered: set[str] = set()
    for evidence in sorted(made, key=_order):
        question = described(evidence.attack).headline.question
        if question and question not in answered:
            answered.add(question)
            alike = [each for each in made if described(each.attack).headline.question == question]
            decisive = min(reversed(alike), key=lambda each: bool(unproven(each)))
            yield _attacked(result, decisive, [each for each in alike if each is not decisive])
        elif not question:
            yield _attacked(result, evidence)


def _order(evidence: Evidence) -> bool:
    """Attacks that undo a protection first, all others in the order of their table."""
    return not described(evidence.attack).headline.undoes


def conclusive_first(findings: Iterable[Finding]) -> tuple[Finding, ...]:
    """Findings in their order, those that prove nothing last."""
    return tuple(sorted(findings, key=lambda each: bool(each.invalid)))


def finding(
    title: str, score: Score, text: str, marks: dict[str, float | None], invalid: tuple[Reason, ...] = ()
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
        invalid=tuple(map(str, invalid)),
    )


def _attacked(result: AuditResult, evidence: Evidence, others: Sequence[Evidence] = ()) -> Finding:
    """What an attack found. others: attacks that ask the same."""
    headline = described(evidence.attack).headline
    scored = found(evidence)
    assert scored is not None
    score, chance = scored
    text = sentence(result, evidence)
    clean = result.score("judge", "raw-raw", "rank-1") if headline.beside_originals else None
    if clean is not None:
        text += f" On the originals it finds {percent(clean.value)}."
    if headline.warning and not unproven(evidence) and chance is not None and (score.low or 0.0) > chance:
        text += f" {headline.warning}"
    if evidence.details.get("caveat"):
        text += f" {evidence.details['caveat']}"
    marks = {"chance": chance, "originals": None if clean is None else clean.value}
    shown = finding(headline.title, score, text + _likewise(others), marks, unproven(evidence))
    return replace(shown, figure=f"≥ {shown.figure}") if at_least(evidence) else shown


def _likewise(others: Sequence[Evidence]) -> str:
    rates = []
    for evidence in others:
        scored = found(evidence)
        if scored is not None:
            invalid = " (INVALID)" if unproven(evidence) else ""
            rates.append(f"with {described(evidence.attack).headline.signal} {percent(scored[0].value)}{invalid}")
    return f" Likewise {' and '.join(rates)}." if rates else ""


def _utility(result: AuditResult) -> Finding | None:
    score = result.score("expert", "protected-protected", "rank-1")
    if score is None or _synthetic(result):
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
    """What the eye still sees: of a picture's original, or of the originals of its class where it has none."""
    score = result.score("images", "protected to original", "SSIM")
    if score is not None:
        baselines = [each for each in result.attacks if described(each.attack).baseline]
        mean = next((s.value for each in baselines for s in each.scores if s.metric == "SSIM"), None)
        text = (
            f"The structural similarity (SSIM) of protected pictures to their originals is {score.value:.2f}; 1 is "
            "equal."
        )
        if mean is not None:
            text += f" One and the same mean picture, which shows nobody, reaches {mean:.2f}."
        return seen(score, text, {} if mean is None else {"mean picture": mean})
    score, other = (result.score("images", setting, "SSIM") for setting in (SAME_CLASS, OTHER_CLASS))
    if score is None:
        return None
    text = (
        "The structural similarity (SSIM) of synthetic pictures to originals of the same class is "
        f"{score.value:.3f}; 1 is equal."
    )
    if other is not None:
        text += f" To originals of other people it is {other.value:.3f}."
    return seen(score, text, {} if other is None else {"other people": other.value})


def seen(score: Score, text: str, marks: Mapping[str, float]) -> Finding:
    """What the eye still sees, by a similarity whose negative values say no more than 0."""
    return Finding(
        title="What the eye still sees",
        role=Role.PRIVACY,
        figure=f"{score.value:.2f}",
        text=text,
        value=max(0.0, score.value),
        low=None if score.low is None else max(0.0, score.low),
        high=None if score.high is None else max(0.0, score.high),
        marks={name: max(0.0, value) for name, value in marks.items()},
        scale="similarity",
    )


def _synthetic(result: AuditResult) -> bool:
    """Whether the pictures of the release belong to no original."""
    return any(reason.code is ReasonCode.SYNTHETIC for each in result.attacks for reason in each.missing)
