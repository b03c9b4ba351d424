"""Running an attack through its gates: only then may "nothing was found" be read as good news."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from veilkit.attacks.adversary import Pairs, Protector
from veilkit.attacks.base import Attack, AttackTarget, Oracle
from veilkit.attacks.gates import not_tried, through_gates
from veilkit.attacks.pictures import NoisePictures, Pictures
from veilkit.rng import Randomness
from veilkit.types import Evidence, ReasonCode

TRIAL_PICTURES = 400  # whole people are taken until so many are reached
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
        assert part.originals is not None
        rng = target.rng.child("gate", "release")
        noise = NoisePictures(part.originals, rng)
        pairs, protector = part.pairs, part.protector
        return cls(
            replace(
                part,
                protected=part.originals,
                features=part.clean_features,
                pairs=None if pairs is None else _clean_pairs(pairs),
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
                protector=None if protector is None else _noise_again(rng.child("again")),
                neutral=None if part.neutral is None else _noise(rng.child("neutral")),
            ),
        )


def run_gated(
    make: Callable[[], Attack],
    target: AttackTarget,
    *,
    oracle: Oracle | None = None,
    public: Pictures | None = None,
    trial: Trial | None = None,
) -> Evidence:
    """Attack the target, and with fresh attackers the identity transform and independent noise.

    make: gives a new attacker; each learns only from what it attacks. trial: of this target, to share it among
    attacks. The evidence says so where the attack does not apply, and holds the reasons where a gate has failed.
    """
    attack = make()
    if missing := attack.lacking(target, oracle, public):
        return attack.not_applicable(*missing)
    evidence = attack.fit(oracle, public).run(target)
    if attack.baseline or not evidence.applicable:
        return evidence
    trial = trial or Trial.of(target)
    if trial is None:
        return not_tried(evidence, _NO_ORIGINALS, ReasonCode.NO_ORIGINALS)
    clean, noisy = make().informed_by(evidence), make().informed_by(evidence)
    clean.fit(_unchanged if oracle else None, public)
    noisy.fit(_noise(trial.noise.rng.child("gate", "oracle")) if oracle else None, public)
    assert trial.clean.originals is not None
    pictures = len(trial.clean.originals)
    return through_gates(
        evidence,
        clean.run(trial.clean),
        noisy.run(trial.noise),
        bound=clean.clean_bound(trial.clean),
        pictures=pictures,
        people=pictures if trial.clean.people is None else len(np.unique(trial.clean.people)),
    )


def trial_pictures(target: AttackTarget) -> NDArray[np.int64]:
    """Positions of the pictures that the gates use: all pictures of people drawn at random who can be found."""
    assert target.originals is not None
    rng = target.rng.child("gate", "pictures")
    if target.search is None:
        return np.sort(rng.permutation(len(target.originals))[:TRIAL_PICTURES])
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


def _unchanged(images: Tensor) -> Tensor:
    return images


def _always(images: Tensor, draw: int) -> Tensor:
    return images


def _clean_pairs(pairs: Pairs) -> Pairs:
    return replace(pairs, protected=pairs.originals, features=pairs.clean_features)


def _noise_pairs(pairs: Pairs, rng: Randomness) -> Pairs:
    noise = NoisePictures(pairs.originals, rng.child("pairs"))
    features = _noise_like(pairs.features, rng.child("pairs", "features"))
    return replace(pairs, protected=noise, features=features, clean_features=None)


def _noise_like(features: NDArray[np.float32] | None, rng: Randomness) -> NDArray[np.float32] | None:
    """Vectors in the shape of others, each independent of everything."""
    return None if features is None else rng.normal(*features.shape).numpy()


def _noise_again(rng: Randomness) -> Protector:
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
