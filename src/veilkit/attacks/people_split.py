"""Who teaches an attacker and who is attacked: people who train an attacker are never scored."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from veilkit.attacks.pictures import Pictures, resized
from veilkit.attacks.target import AttackTarget, Indices, Pairs, given
from veilkit.errors import DataError
from veilkit.rng import Randomness
from veilkit.types import Reason, ReasonCode

FEWEST = 4  # people to learn from, and people to attack
_LARGEST = 256 * 128  # pixels: larger pictures are attacked at a smaller size, which bounds memory and time


@dataclass(frozen=True, slots=True, eq=False)
class Division:
    """public: pairs to learn from. victims: the part of the target that is attacked. source: of the pairs.

    size: (height, width) at which all pictures are taken. missing: why there is no attack, or nothing.
    """

    public: Pairs
    victims: AttackTarget
    source: str
    size: tuple[int, int]
    missing: tuple[Reason, ...] = ()

    @property
    def on_both_sides(self) -> int:
        """People who teach the attacker and are attacked; counted anew from the two sides, and always 0."""
        return 0 if self.victims.people is None else len(np.intersect1d(self.public.people, self.victims.people))

    @property
    def details(self) -> dict[str, object]:
        """Details of the evidence."""
        return {
            "people on both sides": self.on_both_sides,
            "learned from": self.source,
            "public people": len(np.unique(self.public.people)),
            "public pictures": len(self.public),
            "pictures attacked": len(given(self.victims.originals)),
            "size": list(self.size),
        }


def divide(target: AttackTarget) -> Division:
    """Pairs of people to learn from: the target's pairs of others, or else half of its own people."""
    most = given(target.budget).pictures
    victims, teachers = _parts(target)
    size = attack_size(victims if len(given(victims.originals)) else target)
    if target.pairs is not None:
        pairs, source = target.pairs, "pairs of other people"
        _check_strangers(target, pairs)
    else:
        pairs, source = _own_pairs(target, teachers), "half of the people in the release, whose originals are known"
    chosen = some_people(pairs.people, most, target.rng.child("public people"))
    pairs = pairs.only(chosen)
    taught, attacked = len(np.unique(pairs.people)), len(np.unique(victims.clusters))
    missing: tuple[Reason, ...] = ()
    if min(taught, attacked) < FEWEST:
        text = (
            f"to learn from there are {taught} people, and to attack {attacked}; at least {FEWEST} of each are "
            "needed, for those who teach an attacker are never scored"
        )
        missing = (Reason(ReasonCode.TOO_FEW_PEOPLE, text),)
    return Division(pairs, victims, source, size, missing)


def victims_of(target: AttackTarget) -> AttackTarget:
    """The part of a target that `divide` leaves to attack."""
    return _parts(target)[0]


def unsearchable(victims: AttackTarget) -> tuple[Reason, ...]:
    """Why none of the victims can be searched for, or nothing."""
    if victims.search is not None and victims.search.candidates()[0].any():
        return ()
    return (Reason(ReasonCode.NO_IDENTITIES, "none of the people who are attacked can be found again"),)


def some_people(people: Indices, most: int, rng: Randomness) -> Indices:
    """Positions of all pictures of people drawn at random, until there are `most` or nobody is left; sorted."""
    codes, inverse, counts = np.unique(people, return_inverse=True, return_counts=True)
    if len(people) <= most:
        return np.arange(len(people))
    order = rng.permutation(len(codes))
    enough = int(np.searchsorted(np.cumsum(counts[order]), most)) + 1
    return np.flatnonzero(np.isin(inverse.ravel(), order[:enough]))


def attack_size(target: AttackTarget) -> tuple[int, int]:
    """The most frequent size of the release's pictures (the originals', where it has none); a large one is shrunk."""
    pictures = given(target.originals if target.protected is None else target.protected)
    sizes, counts = np.unique(pictures.sizes, axis=0, return_counts=True)
    height, width = (int(side) for side in sizes[np.argmax(counts)])
    shrink = min(1.0, (_LARGEST / (height * width)) ** 0.5)
    return max(1, round(height * shrink)), max(1, round(width * shrink))


def pixels(pictures: Pictures, size: tuple[int, int]) -> Tensor:
    """All pictures at one size, uint8 (N, 3, H, W): a release is 8-bit on disk."""
    held = torch.empty(len(pictures), 3, *size, dtype=torch.uint8)
    for part, images in pictures.batches():
        held[part] = (resized(images, size) * 255).round().to(torch.uint8)
    return held


def _parts(target: AttackTarget) -> tuple[AttackTarget, Indices]:
    """The victims, and positions of the pictures that may teach: none where there are pairs from elsewhere."""
    everybody = target.clusters
    teachers, attacked = np.empty(0, dtype=np.int64), np.arange(len(everybody))
    if target.pairs is None:
        # Without people's codes, two pictures of one person may fall on both sides: then nobody is divided.
        codes = np.unique(everybody) if target.people is not None else everybody[:0]
        half = codes[target.rng.child("divided").permutation(len(codes))[: len(codes) // 2]]
        teachers, attacked = np.flatnonzero(np.isin(everybody, half)), np.flatnonzero(~np.isin(everybody, half))
    chosen = some_people(everybody[attacked], given(target.budget).pictures, target.rng.child("victims"))
    return target.only(attacked[chosen]), teachers


def _own_pairs(target: AttackTarget, teachers: Indices) -> Pairs:
    originals = given(target.originals)
    protected = originals if target.protected is None else target.protected
    pairs = Pairs(originals, protected, target.clusters, target.masks, target.features, target.clean_features)
    return pairs.only(teachers)


def _check_strangers(target: AttackTarget, pairs: Pairs) -> None:
    if target.people is not None and len(both := np.intersect1d(target.people, pairs.people)):
        raise DataError(
            f"{len(both)} people are in the public pairs and in the release under attack; people who train an "
            "attacker are never scored: take them out of one of the two, or give no pairs"
        )
