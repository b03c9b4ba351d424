"""Validation people: taken from the training people by identity, so that the test set is never looked at."""

from __future__ import annotations

from dataclasses import dataclass

from veilkit.errors import ConfigError, DataError
from veilkit.rng import Randomness
from veilkit.types import Record, Split


@dataclass(frozen=True, slots=True)
class Holdout:
    """Training people, and a query and gallery of others."""

    train: Split
    query: Split
    gallery: Split


def hold_out(split: Split, share: float, rng: Randomness) -> Holdout:
    """Set aside `share` of the identities; of each, one image per camera is a query, the rest gallery.

    An identity whose images would leave it without a gallery match from another camera still counts as a distractor.
    """
    if not 0 < share < 1:
        raise ConfigError(f"the share of validation people must lie between 0 and 1, but got {share}")
    people = split.identities
    count = round(share * len(people))
    if not 0 < count < len(people):
        raise DataError(f"{share:.0%} of {len(people)} people leaves no training or no validation people")
    held = {people[i] for i in rng.child("holdout").permutation(len(people))[:count]}
    query: list[Record] = []
    gallery: list[Record] = []
    seen = set()
    for record in split.records:
        if record.identity in held:
            first = (record.identity, record.camera) not in seen
            seen.add((record.identity, record.camera))
            (query if first else gallery).append(record)
    kept = tuple(record for record in split.records if record.identity not in held)
    return Holdout(
        Split(split.name, split.root, kept),
        Split("query", split.root, tuple(query)),
        Split("gallery", split.root, tuple(gallery)),
    )
