"""Running an attack through its gates: only then may "nothing was found" be read as good news.

An attack that finds nothing proves nothing by itself: it may be too weak, or broken. A gate says why it is invalid.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from veilkit.attacks.base import Attack
from veilkit.attacks.pictures import Features, NoisePictures
from veilkit.attacks.target import AttackTarget, Oracle, Pairs, Protector, given
from veilkit.metrics import clopper_pearson
from veilkit.rng import Randomness
from veilkit.types import Evidence, Reason, ReasonCode, Score

TRIAL_PICTURES = 400  # whole people are taken until so many are reached
_ROUNDING = 1e-6
_SURE = 0.999  # a sound attack must not be called invalid by one unlucky draw in twenty
_WIDEN = 3.2905 / 1.9600  # from a 95 % to a 99.9 % interval of a normal distribution
_NO_ORIGINALS = "the originals are not at hand, so nobody knows what this attack finds where nothing is protected"


@dataclass(frozen=True, slots=True, eq=False)
class Trial:
    """A part of a target's pictures or features, once released as they are and once replaced by independent noise."""

    clean: AttackTarget
    noise: AttackTarget

    @classmethod
    def of(cls, target: AttackTarget) -> Trial | None:
        """The trial of a target; None where its originals, or its features before protection, are not known."""
        if target.originals is None or (target.features is not None and target.clean_features is None):
            return None
        part = target.only(trial_pictures(target))
        rng = target.rng.child("gate", "release")
        noise = NoisePictures(given(part.originals), rng)
        pairs, protector = part.pairs, part.protector
        return cls(
            replace(
                part,
                protected=part.originals,
                features=part.clean_features,
                pairs=None
                if pairs is None
                else replace(pairs, protected=pairs.originals, features=pairs.clean_features),
                protector=None if protector is None else _always,
                decoder=None if part.decoder is None else _unchanged,
                neutral=None if part.neutral is None else _unchanged,
            ),
            replace(
                part,
                protected=noise,
                features=_noise_like(part.features, rng.child("features")),
                clean_features=None,
                pairs=None if pairs is None else _noise_pairs(pairs, rng),
                protector=None if protector is None else _noise_by_draw(rng.child("again")),
                neutral=None if part.neutral is None else _noise(rng.child("neutral")),
            ),
        )


def run_gated(
    make: Callable[[], Attack],
    target: AttackTarget,
    *,
    trial: Trial | None = None,
) -> Evidence:
    """Attack the target, and with fresh attackers the identity transform and independent noise.

    make: gives a new attacker; each learns only from what it attacks. trial: of this target, to share it among
    attacks. The evidence says so where the attack does not apply, and holds the reasons where a gate has failed.
    """
    attack = make()
    if missing := attack.lacking(target):
        return attack.not_applicable(*missing)
    evidence = attack.run(target)
    if attack.baseline or not evidence.applicable:
        return evidence
    trial = trial or Trial.of(target)
    if trial is None:
        return not_tried(evidence, _NO_ORIGINALS, ReasonCode.NO_ORIGINALS)
    clean, noisy = make().informed_by(evidence), make().informed_by(evidence)
    clusters = trial.clean.clusters
    return through_gates(
        evidence,
        clean.run(trial.clean),
        noisy.run(trial.noise),
        bound=clean.clean_bound(trial.clean),
        pictures=len(clusters),
        people=len(np.unique(clusters)),
    )


def trial_pictures(target: AttackTarget) -> NDArray[np.int64]:
    """Positions of the pictures that the gates use: all pictures of people drawn at random who can be found."""
    rng = target.rng.child("gate", "pictures")
    if target.search is None:
        return np.sort(rng.permutation(len(given(target.originals)))[:TRIAL_PICTURES])
    search = target.search
    right, _ = search.candidates()
    people = np.unique(search.identities[search.query[right > 0]])
    chosen: list[NDArray[np.int64]] = []
    for place in rng.permutation(len(people)):
        if len(chosen) >= 2 and sum(map(len, chosen)) >= TRIAL_PICTURES:
            break
        chosen.append(np.flatnonzero(search.identities == people[place]))
    if len(chosen) == 1:  # somebody must be there to be taken for somebody else
        chosen.append(np.flatnonzero(search.identities != people[0])[:TRIAL_PICTURES])
    return np.sort(np.concatenate(chosen))


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


def _unchanged(images: Tensor) -> Tensor:
    return images


def _always(images: Tensor, draw: int) -> Tensor:
    return images


def _noise_pairs(pairs: Pairs, rng: Randomness) -> Pairs:
    noise = NoisePictures(pairs.originals, rng.child("pairs"))
    features = _noise_like(pairs.features, rng.child("pairs", "features"))
    return replace(pairs, protected=noise, features=features, clean_features=None)


def _noise_like(features: Features | None, rng: Randomness) -> Features | None:
    """Vectors in the shape of others, each independent of everything."""
    return None if features is None else rng.normal(*features.shape).numpy()


def _noise_by_draw(rng: Randomness) -> Protector:
    """A protector that forgets everything but which picture it was, so that a draw can be repeated."""

    def protect(images: Tensor, draw: int) -> Tensor:
        shape = images.shape[1:]
        return torch.stack([rng.child(draw, image.numpy().tobytes()).uniform(*shape) for image in images])

    return protect


def _noise(rng: Randomness) -> Oracle:
    """A protection that forgets everything: each call gives new noise."""
    calls = 0

    def protect(images: Tensor) -> Tensor:
        nonlocal calls
        calls += 1
        return rng.child("call", calls).uniform(*images.shape)

    return protect
