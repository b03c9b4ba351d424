"""Gates: what an attack must do before its failure means anything.

An attack that finds nothing proves nothing by itself: it may be too weak, or broken. Each gate returns the reason why
the result is invalid, or None.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from veilkit.errors import ConfigError
from veilkit.metrics import clopper_pearson
from veilkit.types import Evidence, Reason, ReasonCode, Score

_ROUNDING = 1e-6
_SURE = 0.999  # a sound attack must not be called invalid by one unlucky draw in twenty
_WIDEN = 3.2905 / 1.9600  # from a 95 % to a 99.9 % interval of a normal distribution


def through_gates(
    evidence: Evidence, clean: Evidence, noise: Evidence, *, bound: float | None, pictures: int, people: int
) -> Evidence:
    """The evidence on a release, with the reasons for which it proves nothing, and what its gates measured.

    clean, noise: what fresh attackers found where nothing is protected, and in independent noise; the first score of
    each is judged. bound: what that score must reach on the originals, None for "surely more than chance". pictures,
    people: that the gates were tried on.
    """
    for tried, what in ((clean, "the originals"), (noise, "independent noise")):
        if not tried.applicable:
            return not_tried(evidence, f"on {what}, {tried.why_missing}")
    headline, noise_score = clean.scores[0], noise.scores[0]
    chance = clean.details.get("chance", {}).get(headline.metric)
    reasons = [reaches_clean_bound(headline, bound or 0.0, chance or 0.0)]
    if chance is not None:
        reasons.append(scores_chance(noise_score, chance, people))
    gates = {
        "metric": headline.metric,
        "pictures": pictures,
        "on originals": headline.value,
        "clean bound": bound,
        "on noise": noise_score.value,
        "chance": chance,
    }
    failed = tuple(reason for reason in reasons if reason)
    return replace(evidence, invalid=(*evidence.invalid, *failed), details={**evidence.details, "gates": gates})


def not_tried(evidence: Evidence, why: str, code: ReasonCode = ReasonCode.GATES_NOT_RUN) -> Evidence:
    """The evidence of an attack whose gates could not be tried: whatever it did not find may still be there."""
    text = why if code is not ReasonCode.GATES_NOT_RUN else f"its gates could not be run: {why}"
    reason = Reason(code, text)
    return replace(evidence, invalid=(*evidence.invalid, reason), details={**evidence.details, "gates": {}})


def reaches_clean_bound(found: Score, bound: float, chance: float) -> Reason | None:
    """On the identity transform: `found` must reach what is possible on the originals, which must beat chance."""
    if found.value < bound - _ROUNDING:
        text = f"where nothing is protected it scores {found.value:.2%}, but {bound:.2%} is possible"
        return Reason(ReasonCode.BELOW_POSSIBLE, text)
    if (found.value if found.low is None else found.low) <= chance:
        return Reason(
            ReasonCode.NOT_ABOVE_CHANCE,
            f"on the originals themselves it is not surely better than chance ({found.value:.2%}, chance "
            f"{chance:.2%}): what it does not find may still be there",
        )
    return None


def scores_chance(found: Score, chance: float, people: int) -> Reason | None:
    """On independent noise: the 99.9 % interval of a rate `found` over so many people must hold the chance level."""
    low, high = (found.value if end is None else end for end in (found.low, found.high))
    exact = clopper_pearson(round(found.value * people), people, confidence=_SURE)
    low = min(found.value - _WIDEN * (found.value - low), exact.low)
    high = max(found.value + _WIDEN * (high - found.value), exact.high)
    if low <= chance <= high:
        return None
    text = f"on independent noise it scores {found.value:.2%} where only chance, {chance:.2%}, is left"
    return Reason(ReasonCode.FOUND_IN_NOISE, text)


def beats_mean_image(recovered: float, baseline: float, metric: str) -> Reason | None:
    """A recovery must come at least as near to the originals (PSNR, SSIM) as the mean image does."""
    if recovered >= baseline:
        return None
    text = f"its {metric} of {recovered:.3g} is below the mean image's {baseline:.3g}: it has learned nothing"
    return Reason(ReasonCode.BELOW_MEAN_IMAGE, text)


def loss_levelled(losses: Sequence[float], *, window: float = 0.2, tolerance: float = 0.02) -> Reason | None:
    """A trained attacker's loss must have levelled off.

    The mean of the last `window` of the losses may lie below the mean of the window before by at most the share
    `tolerance` of all that was learned since the start. A loss that is not finite, or rises, is no better.
    """
    if not 0.0 < window <= 0.25:
        raise ConfigError(f"window must lie in (0, 0.25], for two of them and a start to fit, but got {window}")
    values = np.asarray(losses, dtype=np.float64)
    length = int(len(values) * window)
    if length < 2:
        return _untrained(f"is too short to tell whether its loss has levelled off ({len(values)} values)")
    if not np.isfinite(values).all():
        return _untrained("diverged: the loss is not finite")
    start, before, last = values[:length].mean(), values[-2 * length : -length].mean(), values[-length:].mean()
    if last > start:
        return _untrained(f"failed: the loss rose from {start:.3g} to {last:.3g}")
    if before - last > tolerance * (start - last):
        return _untrained(f"was stopped early: the loss was still falling, from {before:.3g} to {last:.3g}")
    return None


def _untrained(what: str) -> Reason:
    return Reason(ReasonCode.NOT_TRAINED, f"its training {what}")
