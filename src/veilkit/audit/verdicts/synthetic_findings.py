"""The findings on a synthetic release in plain language: whom its classes show, and who was trained on."""

from __future__ import annotations

from collections.abc import Iterable

from veilkit.audit.result import OTHER_CLASS, SAME_CLASS, AuditResult, Finding
from veilkit.audit.verdicts.findings import conclusive_first, finding, seen
from veilkit.audit.verdicts.wording import headline, interval, judge_name, no_less, percent, unproven
from veilkit.types import Evidence

_SIGNALS = {"student": "a student of the release", "labels": "the soft labels", "set": "the synthetic pictures alone"}
_ASKED = {
    "person": (
        "Training people told from others",
        "Of a training person and somebody who was not trained on, each known by pictures that nobody trained on, an "
        "attacker with {signal} tells which is which",
    ),
    "picture": (
        "Training pictures told from others",
        "Of a picture that was trained on and one that was not, an attacker with {signal} tells which is which",
    ),
}


def unpaired_findings(result: AuditResult) -> tuple[Finding, ...]:
    """The findings that there are, the attacker's first."""
    found = (_linkage(result), _memorised(result), *(_member(result, question) for question in _ASKED), _seen(result))
    return conclusive_first(each for each in found if each is not None)


def _linkage(result: AuditResult) -> Finding | None:
    evidence = result.evidence("class_linkage")
    found = headline(evidence, "rank-1")
    if evidence is None or found is None:
        return None
    score, chance = found
    text = (
        f"{judge_name(result)} that holds pictures of all training people names the person whom a class of synthetic "
        f"pictures stands for {percent(score.value)} of the time{interval(score)}. "
        f"Blind guessing names {percent(chance)}."
    )
    if not unproven(evidence) and score.low is not None and score.low > chance:
        text += " Pseudonyms of classes do not hide who they are."
    return finding(
        "Classes linked to people", score, text + no_less(evidence), {"chance": chance}, unproven(evidence)
    )


def _memorised(result: AuditResult) -> Finding | None:
    evidence = result.evidence("memorisation")
    found = headline(evidence, "nearer to training (pixels)")
    if evidence is None or found is None:
        return None
    score, chance = found
    text = (
        f"{percent(score.value)} of the synthetic pictures{interval(score)} come nearer, pixel by pixel, to a "
        "training picture than to any of equally many pictures of people who were not trained on. "
        f"Where nothing is memorised that is {percent(chance)}."
    )
    return finding(
        "Training pictures memorised", score, text + no_less(evidence), {"chance": chance}, unproven(evidence)
    )


def _member(result: AuditResult, question: str) -> Finding | None:
    """By the signal that knows most of those whose gates passed; the others are told beside it."""
    tried = {signal: result.evidence(f"membership_{signal}_{question}") for signal in _SIGNALS}
    made = {signal: each for signal, each in tried.items() if each is not None and each.applicable}
    if not made:
        return None
    chosen = next((signal for signal, each in made.items() if not unproven(each)), next(iter(made)))
    evidence = made.pop(chosen)
    found = headline(evidence, "AUC")
    assert found is not None
    score, chance = found
    title, text = _ASKED[question]
    text = text.format(signal=_SIGNALS[chosen])
    text += f" in {percent(score.value)} of such pairs{interval(score)}; blind guessing in {percent(chance)}."
    if question == "picture" and "other people" in score.note:
        text += " The others are pictures of other people, so that it may be the person who was found."
    text += no_less(evidence) + _others(made.items())
    return finding(title, score, text, {"chance": chance}, unproven(evidence))


def _others(made: Iterable[tuple[str, Evidence]]) -> str:
    told = []
    for signal, evidence in made:
        if (found := headline(evidence, "AUC")) is not None:
            told.append(
                f"with {_SIGNALS[signal]} {percent(found[0].value)}{' (INVALID)' if unproven(evidence) else ''}"
            )
    return f" Likewise {' and '.join(told)}." if told else ""


def _seen(result: AuditResult) -> Finding | None:
    score = result.score("images", SAME_CLASS, "SSIM")
    if score is None:
        return None
    other = result.score("images", OTHER_CLASS, "SSIM")
    text = (
        "The structural similarity (SSIM) of synthetic pictures to originals of the same class is "
        f"{score.value:.3f}; 1 is equal."
    )
    if other is not None:
        text += f" To originals of other people it is {other.value:.3f}."
    return seen(score, text, {} if other is None else {"other people": other.value})
