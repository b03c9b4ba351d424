"""Validation people of an anonymiser: a fifth of the training people, a fifth of their pictures as queries."""

from __future__ import annotations

from veilkit.errors import DataError
from veilkit.rng import Randomness
from veilkit.training.holdout import Holdout
from veilkit.types import Record, Split


def set_aside(split: Split, share: float, rng: Randomness) -> Holdout:
    """Training people, and `share` of all people as others, of whose pictures `share` are queries (Section 4.2).

    At least one picture of a person is a query and one is in the gallery; who has only one picture is in the gallery.
    """
    if any(record.identity is None for record in split.records):
        raise DataError(f"expected an identity for each image of the {split.name!r} split, but some have none")
    people = split.identities
    count = max(1, round(share * len(people)))
    if count >= len(people):
        raise DataError(f"{share:.0%} of {len(people)} people leaves no training people")
    held = [people[place] for place in rng.child("people").permutation(len(people))[:count]]
    query: list[Record] = []
    gallery: list[Record] = []
    for person in sorted(held):
        own = [record for record in split.records if record.identity == person]
        asked = min(max(1, round(share * len(own))), len(own) - 1)
        drawn = set(rng.child("queries", person).permutation(len(own))[:asked].tolist())
        for place, record in enumerate(own):
            (query if place in drawn else gallery).append(record)
    if not query:
        raise DataError("none of the people set aside has two pictures: bring more pictures, or another seed")
    chosen = set(held)
    kept = tuple(record for record in split.records if record.identity not in chosen)
    return Holdout(
        Split(split.name, split.root, kept),
        Split("query", split.root, tuple(query)),
        Split("gallery", split.root, tuple(gallery)),
    )
