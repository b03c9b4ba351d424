"""Attacks of a study as JSON values, picture by picture where releases are compared in pairs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from veilkit.attacks import AttackTarget, run_gated
from veilkit.attacks.learned.recovery import Recovery, RecoveryConfig
from veilkit.attacks.people_split import pixels
from veilkit.attacks.recovered import likeness
from veilkit.metrics import paired_difference
from veilkit.rng import Randomness
from veilkit.types import Evidence

_DIGITS = 5  # of values of single pictures


def described(evidence: Evidence) -> dict[str, Any]:
    """An attack's evidence as JSON values; the first score is its headline, `chance` what blind guessing scores."""
    details = evidence.details
    return {
        "level": str(evidence.level),
        "applicable": evidence.applicable,
        "reason": evidence.why_missing,
        "invalid": [str(reason) for reason in evidence.invalid],
        "scores": {
            score.metric: [None if part is None else float(part) for part in (score.value, score.low, score.high)]
            for score in evidence.scores
        },
        "chance": {metric: float(value) for metric, value in details.get("chance", {}).items()},
        "mean image": {metric: float(value) for metric, value in details.get("mean image", {}).items()},
        "as released": {metric: float(value) for metric, value in details.get("as released", {}).items()},
        "gates": dict(details.get("gates", {})),
    }  # fmt: skip


def recovery(target: AttackTarget, config: RecoveryConfig) -> dict[str, Any]:
    """The U-Net's evidence, through its gates; of every recovered picture its person's code, SSIM and PSNR."""
    evidence = run_gated(lambda: Recovery(config), target)
    if not evidence.applicable:
        return described(evidence)
    victims, answers = Recovery(config).recover(target)
    assert victims.originals is not None
    assert victims.people is not None
    found = likeness(answers, pixels(victims.originals, (answers.shape[2], answers.shape[3])))
    return {
        **described(evidence),
        "people": victims.people.tolist(),
        "SSIM each": rounded(found.get("SSIM")),
        "PSNR each": rounded(found["PSNR"]),
    }


def paired(
    pairs: Mapping[str, tuple[Mapping[str, Any], Mapping[str, Any]]], each: str, rng: Randomness
) -> dict[str, Any]:
    """`difference` of the values `each` of pairs of cells, by the pairs' names; without those that lack values."""
    return {
        name: difference(first[each], second[each], first["people"], rng)
        for name, (first, second) in pairs.items()
        if first.get(each) and second.get(each)
    }


def difference(
    first: Sequence[float | None], second: Sequence[float | None], people: Sequence[int], rng: Randomness
) -> list[float]:
    """[mean(first) - mean(second), low, high] over the pictures that have both values; people are drawn again."""
    both = [place for place, pair in enumerate(zip(first, second, strict=True)) if None not in pair]
    one, other = (np.array([values[place] for place in both], dtype=np.float64) for values in (first, second))
    found = paired_difference(one, other, np.asarray(people)[both], generator=rng.child("bootstrap").numpy())
    return [found.value, found.low, found.high]


def rounded(values: NDArray[np.float64] | None) -> list[float | None]:
    """Values of single pictures for a cell; None where one is not finite."""
    if values is None:
        return []
    return [round(float(value), _DIGITS) if np.isfinite(value) else None for value in values]
