"""Running attacks on unpaired releases through their gates, as `gated` does for paired ones.

The identity transform of such a protection publishes the training pictures themselves, with their labels, and its
student is one that has memorised them. Independent noise, labels and a student of that noise say nothing of anybody.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from veilkit.attacks.gates import not_tried, through_gates
from veilkit.attacks.synthetic_release.base import LabelledPictures, UnpairedAttack, UnpairedTarget
from veilkit.attacks.synthetic_release.nearest import RememberedPictures
from veilkit.attacks.synthetic_release.reference_releases import (
    RememberedLook,
    noise_release,
    open_release,
    small_pixels,
)
from veilkit.attacks.synthetic_release.shadows import Recipe, Shadows
from veilkit.rng import Randomness
from veilkit.types import Evidence

TRIAL_PICTURES = 400  # of each set, whole people are taken until so many are reached


@dataclass(frozen=True, slots=True, eq=False)
class UnpairedTrial:
    """A part of a target's people, once with their training pictures as the release and once with noise."""

    clean: UnpairedTarget
    noise: UnpairedTarget

    @classmethod
    def of(cls, target: UnpairedTarget) -> UnpairedTrial:
        """The trial that goes with a target.

        Where all pictures of the training people were trained on, half of each person's are taken for unseen: an
        attack that compares a picture with itself would pass with any recogniser.
        """
        rng = target.rng.child("gate")
        members = _some_people(target.members, rng.child("members"))
        if target.unseen is None:
            members, unseen = _halves(members)
        else:
            unseen = _of_people(target.unseen, members.people)
        held_out = None if target.held_out is None else _some_people(target.held_out, rng.child("held out"))
        members = LabelledPictures(RememberedPictures(members.pictures), members.people)
        # A student that knows pixels only would not know a person again, and an attack could not show that it works.
        look = small_pixels if target.recogniser is None else RememberedLook(target.recogniser)
        part = replace(
            target,
            release=open_release(members, look),
            members=members,
            unseen=unseen,
            held_out=held_out,
            shadows=_shadows(target, lambda public: lambda indices: open_release(public.only(indices), look)),
        )
        noise = noise_release(members, rng.child("release"), look)

        def forgetful(public: LabelledPictures) -> Recipe:
            return lambda indices: noise_release(public.only(indices), rng.child("shadow", indices.tobytes()), look)

        return cls(part, replace(part, release=noise, shadows=_shadows(target, forgetful)))


def run_unpaired(
    make: Callable[[], UnpairedAttack], target: UnpairedTarget, *, trial: UnpairedTrial | None = None
) -> Evidence:
    """Attack the target, and with fresh attackers a release of the training pictures and one of noise.

    trial: of this target, to share it among attacks. The evidence says so where the attack does not apply, and holds
    the reasons where a gate has failed.
    """
    attack = make()
    if missing := attack.lacking(target):
        return attack.not_applicable(*missing)
    evidence = attack.run(target)
    if not evidence.applicable:
        return evidence
    trial = trial or UnpairedTrial.of(target)
    clean = make()
    if missing := clean.lacking(trial.clean):
        return not_tried(evidence, "; ".join(map(str, missing)))
    on_noise = make().run(trial.noise)
    return through_gates(
        evidence,
        clean.run(trial.clean),
        on_noise,
        bound=clean.clean_bound(trial.clean),
        pictures=len(trial.clean.members),
        people=int(on_noise.details.get("people", 0)),
    )


def _shadows(target: UnpairedTarget, recipe: Callable[[LabelledPictures], Recipe]) -> Shadows | None:
    if target.shadows is None:
        return None
    shadows = target.shadows
    rng = target.rng.child("gate", "public")
    public = _some_people(LabelledPictures(shadows.public, shadows.people), rng)
    public = LabelledPictures(RememberedPictures(public.pictures), public.people)
    return Shadows(
        public.pictures, public.people, recipe(public), rng=rng, count=len(shadows), share=min(shadows.share, 0.5)
    )


def _some_people(labelled: LabelledPictures, rng: Randomness) -> LabelledPictures:
    """All pictures of people drawn at random, at least four of them, until there are enough pictures."""
    people = np.unique(labelled.people)
    chosen: list[NDArray[np.int64]] = []
    for place in rng.permutation(len(people)):
        if len(chosen) >= 4 and sum(map(len, chosen)) >= TRIAL_PICTURES:
            break
        chosen.append(np.flatnonzero(labelled.people == people[place]))
    return labelled.only(np.sort(np.concatenate(chosen)))


def _of_people(labelled: LabelledPictures, people: NDArray[np.int64]) -> LabelledPictures | None:
    indices = np.flatnonzero(np.isin(labelled.people, people))
    return labelled.only(indices) if len(indices) else None


def _halves(labelled: LabelledPictures) -> tuple[LabelledPictures, LabelledPictures | None]:
    """Every other picture of each person, from the first; and the rest, None where everybody has one only."""
    order = np.argsort(labelled.people, kind="stable")
    _, starts, counts = np.unique(labelled.people[order], return_index=True, return_counts=True)
    nth = np.empty(len(order), dtype=np.int64)
    nth[order] = np.arange(len(order)) - np.repeat(starts, counts)
    rest = np.flatnonzero(nth % 2)
    return labelled.only(np.flatnonzero(nth % 2 == 0)), labelled.only(rest) if len(rest) else None
