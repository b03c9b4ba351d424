"""A release under attack: what its adversary is given, and what tells whether the adversary is right."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from veilkit.attacks.pictures import Features, Pictures, SomePictures
from veilkit.attacks.search import Search
from veilkit.errors import ConfigError, DataError
from veilkit.experts import Embedder
from veilkit.metrics import RetrievalResult, retrieval
from veilkit.rng import Randomness

T = TypeVar("T")
Indices = NDArray[np.int64]

Protector: TypeAlias = Callable[[Tensor, int], Tensor]
"""Protects again: images (N, 3, H, W) in [0, 1] and the number of a draw to protected images of the same shape.

Each draw is under a fresh key; the same draw gives the same answer, whichever pictures share a call.
"""

Oracle: TypeAlias = Callable[[Tensor], Tensor]
"""The protection as the adversary may run it: images (N, 3, H, W) in [0, 1] to protected images of the same shape."""

Undo: TypeAlias = Callable[[Tensor], Tensor]
"""The decoder of a reversible protection: protected images (N, 3, H, W) in [0, 1] to the originals, nearly."""


@dataclass(frozen=True, slots=True)
class Budget:
    """How much an attack that learns may spend. Where none is given, such attacks do not apply.

    updates: steps of training, each on `batch` pictures; an attack that works on each victim by itself may look at
    updates x batch pictures in all. pictures: at most so many train, and at most so many are attacked, in whole
    people. seed: of all first weights and orders.
    """

    updates: int = 2000
    pictures: int = 2000
    batch: int = 16
    seed: int = 0

    def __post_init__(self) -> None:
        if min(self.updates, self.pictures) < 1 or self.batch < 2:
            raise ConfigError(f"a budget needs positive numbers, and batches of at least 2 pictures, but got {self}")


@dataclass(frozen=True, slots=True, eq=False)
class Masks:
    """Where the person stands in each original. values: boolean (N, H, W), of one size, true where the person is.

    source: where they come from: known to whoever drew the pictures, or estimated from the originals.
    """

    values: NDArray[np.bool_]
    source: str

    def __post_init__(self) -> None:
        if self.values.ndim != 3 or self.values.dtype != np.bool_:
            raise DataError(f"masks must be boolean (N, H, W), but are {self.values.dtype} {self.values.shape}")

    def __len__(self) -> int:
        return len(self.values)

    def only(self, indices: Indices) -> Masks:
        """The masks at these positions."""
        return Masks(self.values[indices], self.source)


@dataclass(frozen=True, slots=True, eq=False)
class Pairs:
    """Pictures of other people before and after the protection. people: (N,) codes, in the target's numbering.

    masks: of the originals, where known. features, clean_features: as in the target, of a release of features.
    """

    originals: Pictures
    protected: Pictures
    people: Indices
    masks: Masks | None = None
    features: Features | None = None
    clean_features: Features | None = None

    def __post_init__(self) -> None:
        counts = [len(self.originals), len(self.protected), len(self.people)]
        counts += [len(each) for each in (self.masks, self.features, self.clean_features) if each is not None]
        if len(set(counts)) != 1:
            raise DataError(
                f"expected as many originals as protected pictures, codes, masks and features, but got {counts}"
            )

    def __len__(self) -> int:
        return len(self.people)

    def only(self, indices: Indices) -> Pairs:
        """The pairs at these positions."""
        return _part_of(self, ("originals", "protected", "people", "masks", "features", "clean_features"), indices)


@dataclass(frozen=True, eq=False, kw_only=True)
class AdversaryHalf:
    """The half of a target that an adversary holds. Each uses only what its level and its needs allow.

    protected: the release's pictures. features: (N, D) what a release of features shows of each picture. recogniser:
    independent of the protection, to attack with.

    The rest is for adversaries who learn, none of whom applies without a budget, and for those who stole something.
    pairs: of other people, who are not in this target; without any, its own people are divided. protector: protects
    anew under fresh keys. authorised: the expert for whom the release was made. work: a folder for states of
    training, from which it goes on; without one they are lost. start: weights that attackers who train a recogniser
    start from, a backbone file or a whole Re-ID network (safetensors); without any they start from scratch. decoder:
    the secret half of a reversible protection, for whoever has stolen it; it needs no budget. neutral: the protection
    with one and the same identity for everybody, where it injects identities. identity: the expert by which it tells
    whose to replace, for whoever has stolen its model.
    """

    protected: Pictures | None = None
    features: Features | None = None
    recogniser: Embedder | None = None
    budget: Budget | None = None
    pairs: Pairs | None = None
    protector: Protector | None = None
    authorised: Embedder | None = None
    work: Path | None = None
    start: Path | None = None
    decoder: Undo | None = None
    neutral: Oracle | None = None
    identity: Embedder | None = None


@dataclass(frozen=True, eq=False, kw_only=True)
class ScoringHalf:
    """The half of a target that scores what an adversary found. Its victims' part is never learned from.

    Two kinds of adversaries hold a part of it, and say so: one who searches raw pictures of the same people (a
    gallery of `originals`, by `search`), and one who knows the originals of half of the people
    (`people_split.divide`).

    people: (N,) a code for each picture's person, whom the bootstrap draws; None where unknown. search: who is
    searched for; None where people cannot be. masks: of the originals. clean_features: (N, D) of the same pictures
    before anything was done to protect them, without which no attack on features can pass its gates.
    """

    originals: Pictures | None = None
    people: Indices | None = None
    search: Search | None = None
    masks: Masks | None = None
    clean_features: Features | None = None


@dataclass(frozen=True, eq=False, kw_only=True)
class AttackTarget(AdversaryHalf, ScoringHalf):
    """A release under attack. Picture i of `protected` came from picture i of `originals`, where those are known.

    rng: of the bootstrap, which draws the same people for all scores, and of the gates.
    """

    rng: Randomness

    def only(self, indices: Indices) -> AttackTarget:
        """The part of the target that holds these pictures."""
        names = ("protected", "features", "originals", "people", "search", "masks", "clean_features")
        return _part_of(self, names, indices)

    @property
    def clusters(self) -> Indices:
        """(N,) the people's codes; where nobody knows them, each original stands for somebody else."""
        return np.arange(len(given(self.originals))) if self.people is None else self.people

    def protected_features(self) -> Features:
        """(N, D) the recogniser's features of the release's pictures."""
        return given(self.protected).features(given(self.recogniser))

    def original_features(self) -> Features:
        """(N, D) the recogniser's features of the originals."""
        return given(self.originals).features(given(self.recogniser))

    def find_own(self, features: Features) -> RetrievalResult:
        """Search features (N, D) of all pictures among the originals'; right is the very own original only."""
        raw = self.original_features()
        each = np.arange(len(raw))
        return retrieval(features, raw, each, each)


def given(value: T | None) -> T:
    """What an attack has said that it needs: an attack is never run without."""
    assert value is not None
    return value


def _part_of(held: T, names: tuple[str, ...], indices: Indices) -> T:
    """The same for the pictures at `indices` only: these of its fields have an entry for each picture."""

    def part(value: Any) -> Any:
        if value is None or isinstance(value, np.ndarray):
            return None if value is None else value[indices]
        return SomePictures(value, indices) if isinstance(value, Pictures) else value.only(indices)

    return replace(held, **{name: part(getattr(held, name)) for name in names})  # type: ignore[type-var]
