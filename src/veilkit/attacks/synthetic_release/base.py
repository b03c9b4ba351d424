"""Releases whose pictures belong to no original: what an adversary sees, and what an attack on it is.

Such a release holds synthetic pictures, each of one class, and a class stands for one training person under a
pseudonym. There are no pairs, so the questions are others: who, and which picture, was in the training set; was a
picture copied; which class is which person?
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, ClassVar, TypeAlias

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from veilkit.attacks.headline import Described, Risk
from veilkit.attacks.pictures import Pictures, SomePictures
from veilkit.errors import DataError
from veilkit.experts import Embedder
from veilkit.rng import Randomness
from veilkit.types import Evidence, Reason, ReasonCode

if TYPE_CHECKING:
    from veilkit.attacks.synthetic_release.shadows import Shadows

Model: TypeAlias = Callable[[Tensor], Tensor]
"""A network in evaluation mode: images (N, 3, H, W) in [0, 1] to logits or features, (N, D)."""


@dataclass(frozen=True, slots=True, eq=False)
class LabelledPictures:
    """Pictures and who is in them. people: (N,) codes, the same in all parts of a target."""

    pictures: Pictures
    people: NDArray[np.int64]

    def __post_init__(self) -> None:
        if not len(self.pictures) or self.people.shape != (len(self.pictures),):
            raise DataError(
                "expected pictures with one person's code each, "
                f"but got {len(self.pictures)} pictures and codes of shape {self.people.shape}"
            )

    def __len__(self) -> int:
        return len(self.pictures)

    def only(self, indices: NDArray[np.int64]) -> LabelledPictures:
        """The pictures at these positions."""
        return LabelledPictures(SomePictures(self.pictures, indices), self.people[indices])


@dataclass(frozen=True, slots=True, eq=False)
class UnpairedRelease:
    """All that is published, or follows from it without the originals.

    classes: (S,) for each synthetic picture the code of its class's person, as in the target's members; an adversary
    sees which pictures share a class, never who it is. soft_labels: (S, C) logits of the pool on each picture.
    student: logits (N, C) of a network trained on the release alone, which everybody who holds the release can train.
    student_features: the same network's features (N, D), where known.
    """

    synthetic: Pictures
    classes: NDArray[np.int64]
    soft_labels: NDArray[np.float32] | None = None
    student: Model | None = None
    student_features: Model | None = None

    def __post_init__(self) -> None:
        count = len(self.synthetic)
        if not count or self.classes.shape != (count,):
            raise DataError(
                "expected synthetic pictures with one class each, "
                f"but got {count} pictures and classes of shape {self.classes.shape}"
            )
        labels = self.soft_labels
        if labels is not None and (labels.ndim != 2 or len(labels) != count or labels.shape[1] < 2):
            raise DataError(
                f"soft labels must be logits of shape ({count}, C) with C at least 2, but got {labels.shape}"
            )
        if labels is not None and not np.isfinite(labels).all():
            raise DataError("soft labels must be finite logits, but hold NaN or infinity; give logits, not log(0)")


class UnpairedNeed(StrEnum):
    """Something without which an attack on an unpaired release does not apply."""

    SOFT_LABELS = "soft labels"
    STUDENT = "student"
    UNSEEN = "unseen"
    HELD_OUT = "held out"
    NON_MEMBERS = "non-members"
    EXPERT = "expert"
    SHADOWS = "shadows"


_LACKING = {
    UnpairedNeed.SOFT_LABELS: Reason(ReasonCode.NO_SOFT_LABELS, "the release holds no soft labels"),
    UnpairedNeed.STUDENT: Reason(ReasonCode.NO_STUDENT, "there is no student trained on the release"),
    UnpairedNeed.UNSEEN: Reason(
        ReasonCode.NO_UNSEEN, "all pictures of the training people were trained on, so person and picture are one"
    ),
    UnpairedNeed.HELD_OUT: Reason(ReasonCode.NO_HELD_OUT, "there are no pictures of people outside the training set"),
    UnpairedNeed.NON_MEMBERS: Reason(ReasonCode.NO_NON_MEMBERS, "there are no pictures outside the training set"),
    UnpairedNeed.EXPERT: Reason(ReasonCode.NO_EXPERT, "there is no recogniser to attack with"),
    UnpairedNeed.SHADOWS: Reason(ReasonCode.NO_SHADOWS, "the protection cannot be run on a public population"),
}


@dataclass(frozen=True, slots=True, eq=False)
class UnpairedTarget:
    """An unpaired release under attack, and the truth to score what was found.

    rng: of the bootstrap, of subsampling and of the gates. members: the pictures trained on. unseen: other pictures
    of the same people. held_out: pictures of other people of the same distribution. recogniser: independent of the
    release. shadows: the same recipe on a public population, whose people are in none of the other sets.

    members, unseen and held_out must differ in nothing but what was trained on: the same cameras in equal shares, the
    same compression. Otherwise an attack finds the camera and calls it membership, or misses what is there.
    """

    rng: Randomness
    release: UnpairedRelease
    members: LabelledPictures
    unseen: LabelledPictures | None = None
    held_out: LabelledPictures | None = None
    recogniser: Embedder | None = None
    shadows: Shadows | None = None

    def __post_init__(self) -> None:
        trained = self.members.people
        if self.unseen is not None and not np.isin(self.unseen.people, trained).all():
            raise DataError("unseen pictures must show training people, but some show others; put those in held_out")
        if not np.isin(self.release.classes, trained).all():
            raise DataError(
                "each class must have the code of a training person, but some have not; number them alike"
            )
        if self.held_out is not None and np.isin(self.held_out.people, trained).any():
            raise DataError("held-out people must not be in the training set, but some are; leave them out")
        if self.shadows is not None:
            tested = trained if self.held_out is None else np.concatenate([trained, self.held_out.people])
            if np.isin(self.shadows.people, tested).any():
                raise DataError(
                    "people whose pictures train the shadows must not be tested, but some are among the members or "
                    "held out; take them out of the public population"
                )

    def lacks(self, need: UnpairedNeed) -> bool:
        """Whether something an attack may need is not here."""
        return {
            UnpairedNeed.SOFT_LABELS: self.release.soft_labels is None,
            UnpairedNeed.STUDENT: self.release.student is None,
            UnpairedNeed.UNSEEN: self.unseen is None,
            UnpairedNeed.HELD_OUT: self.held_out is None,
            UnpairedNeed.NON_MEMBERS: self.unseen is None and self.held_out is None,
            UnpairedNeed.EXPERT: self.recogniser is None,
            UnpairedNeed.SHADOWS: self.shadows is None,
        }[need]


class UnpairedAttack(Described):
    """An adversary of one level against an unpaired release. A subclass sets the class attributes and writes `run`.

    The first score of its evidence is the headline, by which the gates judge it. `details["chance"]` holds what blind
    guessing scores, by metric, and `details["people"]` on how many people or classes the headline rests.
    """

    needs: ClassVar[frozenset[UnpairedNeed]]

    @classmethod
    def risk(cls) -> Risk:
        """Whether somebody was trained on is inferred, unless a subclass asks something else."""
        return Risk.INFERENCE

    @abstractmethod
    def run(self, target: UnpairedTarget) -> Evidence:
        """Attack; the target has all that the attack needs. Gates are applied by `gated.run_unpaired`."""

    def clean_bound(self, target: UnpairedTarget) -> float | None:
        """What the headline must reach where the release is the training pictures; None for "more than chance"."""
        return None

    def lacking(self, target: UnpairedTarget) -> tuple[Reason, ...]:
        """Why the attack does not apply, or nothing."""
        return tuple(_LACKING[need] for need in UnpairedNeed if need in self.needs and target.lacks(need))
