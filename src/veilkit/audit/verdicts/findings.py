"""The findings in plain language: what an attacker gets and what a user keeps."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from veilkit.audit.result import DIFFERENCE, AuditResult, Finding
from veilkit.audit.verdicts.wording import at_least, found, interval, percent, phrase_of, points, sentence, unproven
from veilkit.types import Role, Score

SEEN = "What the eye still sees"
_UNDOING = ("jigsaw", "unmix", "recovery", "recovery_features", "averaging", "stolen_decoder", "feature_decoder",
            "feature_matching", "embedding_inversion", "identity_inversion")  # fmt: skip
_WITH_ORIGINALS = ("stock_recogniser", "linkage")  # the judge's rate on the originals says what could be found
_TOLD = (*_UNDOING, "retrained", "identification", *_WITH_ORIGINALS, "farthest_match", "attribute_path",
         "own_original")  # fmt: skip


def summarise(result: AuditResult) -> AuditResult:
    """The result with its findings: what can be concluded first, and of that the attacker's."""
    findings = (*(_attacked(result, attack) for attack in _TOLD), _utility(result), _similarity(result))
    return replace(result, summary=conclusive_first(each for each in findings if each is not None))


def conclusive_first(findings: Iterable[Finding]) -> tuple[Finding, ...]:
    """Findings in their order, those that prove nothing last."""
    return tuple(sorted(findings, key=lambda each: bool(each.invalid)))


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


def _attacked(result: AuditResult, attack: str) -> Finding | None:
    """What an attack found; there is nothing to tell where it does not apply."""
    evidence = result.evidence(attack)
    scored = found(evidence)
    if evidence is None or scored is None:
        return None
    score, chance = scored
    text = sentence(result, evidence)
    clean = result.score("judge", "raw-raw", "rank-1") if attack in _WITH_ORIGINALS else None
    if clean is not None:
        text += f" On the originals it finds {percent(clean.value)}."
    if attack in _UNDOING and not unproven(evidence) and chance is not None and (score.low or 0.0) > chance:
        text += " This protection is not safe."
    marks = {"chance": chance, "originals": None if clean is None else clean.value}
    told = finding(phrase_of(attack).title, score, text, marks, unproven(evidence))
    return replace(told, figure=f"≥ {told.figure}") if at_least(evidence) else told


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
