"""Running attacks on unpaired releases through their gates, as `gated` does for paired ones.

The identity transform of such a protection publishes the training pictures themselves, with their labels, and its
student is one that has memorised them. Independent noise, labels and a student of that noise say nothing of anybody.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import TypeAlias

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from veilkit.attacks.gated import not_tried, through_gates
from veilkit.attacks.pictures import NoisePictures, Pictures, embedded
from veilkit.attacks.synthetic_release.base import LabelledPictures, UnpairedAttack, UnpairedRelease, UnpairedTarget
from veilkit.attacks.synthetic_release.nearest import RememberedPictures, Vectors, distances, shrunk
from veilkit.attacks.synthetic_release.shadows import Recipe, Shadows
from veilkit.experts import Embedder
from veilkit.metrics.inputs import l2_normalised
from veilkit.rng import Randomness
from veilkit.types import Evidence

Look: TypeAlias = Callable[[Tensor], Vectors]
"""What a student sees in images (N, 3, H, W): vectors (N, D) of length one."""

TRIAL_PICTURES = 400  # of each set, whole people are taken until so many are reached
_SURE = 10.0  # logit of the right class where labels are as good as given


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


def small_pixels(images: Tensor) -> Vectors:
    """As `nearest.pixel_vectors`, of a batch."""
    return np.asarray(shrunk(images).numpy())


class RememberedLook:
    """A recogniser's features, computed once for each picture: many students look at the same candidates."""

    def __init__(self, recogniser: Embedder) -> None:
        self._recogniser = recogniser
        self._seen: dict[bytes, Vectors] = {}

    def __call__(self, images: Tensor) -> Vectors:
        """(N, 3, H, W) in [0, 1] -> (N, D) of length one."""
        names = [hashlib.blake2b(image.contiguous().numpy().data, digest_size=16).digest() for image in images]
        new = [place for place, name in enumerate(names) if name not in self._seen]
        if new:
            found = l2_normalised(embedded(self._recogniser, images[new]))
            self._seen.update(zip((names[place] for place in new), found, strict=True))
        return np.stack([self._seen[name] for name in names])


def open_release(members: LabelledPictures, look: Look = small_pixels) -> UnpairedRelease:
    """The training pictures themselves, labels that name their class, and a student that has memorised them."""
    _, place = np.unique(members.people, return_inverse=True)
    labels = np.zeros((len(members), _classes(place)), dtype=np.float32)
    labels[np.arange(len(members)), place] = _SURE
    return UnpairedRelease(members.pictures, members.people, labels, NearestStudent(members.pictures, place, look))


def noise_release(members: LabelledPictures, rng: Randomness, look: Look = small_pixels) -> UnpairedRelease:
    """Noise in place of each training picture, random labels, and a student that has memorised the noise."""
    _, place = np.unique(members.people, return_inverse=True)
    pictures = NoisePictures(members.pictures, rng.child("pictures"))
    labels = rng.child("labels").normal(len(members), _classes(place)).numpy()
    return UnpairedRelease(pictures, members.people, labels, NearestStudent(pictures, place, look))


class NearestStudent:
    """A classifier that knows its training pictures by heart: a class's logit is -log of the distance to its nearest.

    Distances are those of what it sees, plus 1e-3. classes: (N,) from 0.
    """

    def __init__(self, pictures: Pictures, classes: NDArray[np.int64], look: Look = small_pixels) -> None:
        self._pictures, self._classes, self._look = pictures, classes, look
        self._known: Vectors | None = None

    def __call__(self, images: Tensor) -> Tensor:
        """(N, 3, H, W) in [0, 1] -> logits (N, C)."""
        if self._known is None:
            parts = [(part, self._look(batch)) for part, batch in self._pictures.batches()]
            self._known = np.empty((len(self._classes), parts[0][1].shape[1]), dtype=np.float32)
            for part, seen in parts:
                self._known[part] = seen
        far = distances(self._look(images), self._known)
        near = np.full((len(far), _classes(self._classes)), 2.0, dtype=np.float32)  # no chord is longer
        np.minimum.at(near.T, self._classes, far.T)
        return torch.from_numpy(-np.log(near + 1e-3))


def _classes(place: NDArray[np.int64]) -> int:
    return max(2, int(place.max()) + 1)
