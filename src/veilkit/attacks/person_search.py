"""Searches for a person with a stock recogniser that has never seen the protection: the least to be tried (L0)."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from veilkit.attacks.base import Attack, AttackTarget, Need
from veilkit.attacks.headline import Headline
from veilkit.attacks.intervals import retrieval_scores
from veilkit.attacks.pictures import Features, HeldPictures
from veilkit.attacks.target import given
from veilkit.types import Evidence, Level, Score


class PersonSearch(Attack):
    """Searches pictures of a person in some gallery; a subclass says in which."""

    level = Level.L0

    def queries(self, target: AttackTarget) -> Features:
        """(N, D) features of the pictures to search with: the protected ones, unless a subclass says otherwise."""
        return target.protected_features()

    @abstractmethod
    def gallery(self, target: AttackTarget) -> Features:
        """(N, D) features of the pictures to search among."""

    def run(self, target: AttackTarget) -> Evidence:
        """Rank-k, mAP and mINP of the queries in the gallery."""
        search = given(target.search)
        chance = search.chance()
        scores = found_among(target, self.queries(target), self.gallery(target), chance)
        queries = int((search.candidates()[0] > 0).sum())
        details = {"chance": chance, "recogniser": given(target.recogniser).name, "queries": queries}
        return Evidence(self.name, self.level, scores, details=details)

    def clean_bound(self, target: AttackTarget) -> float | None:
        """Rank-1 of the same recogniser and search on the originals alone."""
        return rank_one_on_originals(target)


class StockRecogniser(PersonSearch):
    """Searches protected pictures among protected pictures with a recogniser that has never seen the protection.

    The adversary holds only the release: can it tell which protected pictures show one person?
    """

    name = "stock_recogniser"
    summary = "finds the same person among protected pictures with a recogniser that knows nothing of the protection"
    searches = "protected", "protected"
    headline = Headline(
        "People told apart in the release",
        "{Judge} that sees only the protected pictures finds the right person {value} of the time{interval}",
        beside_originals=True,
    )
    needs = frozenset({Need.IMAGES, Need.IDENTITIES, Need.EXPERT})

    def gallery(self, target: AttackTarget) -> Features:
        """The protected pictures themselves."""
        return target.protected_features()


class Linkage(PersonSearch):
    """Searches each protected picture among raw pictures with a stock recogniser: who is it?

    The picture's own original is not among them; the right person must be named by another raw picture. The adversary
    holds raw pictures of the people, as a photo archive does, but has not trained on protected ones: a recogniser
    that has is a stronger, L2 adversary.
    """

    name = "linkage"
    summary = "names the person in a protected picture by searching it among other, raw pictures"
    searches = "protected", "raw"
    headline = Headline(
        "Protected pictures linked to people",
        "{Judge} that holds other, raw pictures of these people names the person in a protected one {value} of the "
        "time{interval}",
        "names",
        beside_originals=True,
    )
    needs = frozenset({Need.IMAGES, Need.PAIRS, Need.IDENTITIES, Need.EXPERT})

    def gallery(self, target: AttackTarget) -> Features:
        """The raw pictures."""
        return target.original_features()


class AttributePath(PersonSearch):
    """Searches pictures made with one and the same identity for everybody among raw pictures of the people.

    A protection that swaps identities also sees the picture. Whatever the injected identity hides, and however much
    noise it has, what still tells people apart here is left in every release: in features, skin, the edge of the
    face. "among themselves": such pictures searched among such pictures.

    Who runs the protection makes these pictures; the search is one that anybody can do.
    """

    name = "attribute_path"
    summary = "names the person in pictures that were all given one and the same identity"
    tells_identity = False
    headline = Headline(
        "People told by what is not identity",
        "{Judge} that holds raw pictures of these people names the person {value} of the time{interval} in pictures "
        "that were all given one and the same identity",
        "names",
    )
    needs = frozenset({Need.PAIRS, Need.IDENTITIES, Need.EXPERT, Need.NEUTRAL})

    def __init__(self) -> None:
        self._made: tuple[AttackTarget, Features] | None = None

    def queries(self, target: AttackTarget) -> Features:
        """Features of the originals with the same identity for everybody, which are made once for a target."""
        if self._made is None or self._made[0] is not target:
            self._made = target, _neutral(target)
        return self._made[1]

    def gallery(self, target: AttackTarget) -> Features:
        """The raw pictures."""
        return target.original_features()

    def run(self, target: AttackTarget) -> Evidence:
        """Rank-k, mAP and mINP in raw pictures; the same among themselves."""
        evidence = super().run(target)
        chance = dict(evidence.details["chance"])
        among = found_among(target, self.queries(target), self.queries(target), chance)
        scores = (*evidence.scores, *(replace(each, metric=f"among themselves {each.metric}") for each in among))
        chance |= {f"among themselves {metric}": value for metric, value in chance.items()}
        return replace(evidence, scores=scores, details={**evidence.details, "chance": chance})


def found_among(
    target: AttackTarget, query: Features, gallery: Features, chance: Mapping[str, float], note: str = ""
) -> tuple[Score, ...]:
    """Scores of a search with features (N, D) of all pictures as queries among features (N, D) as gallery."""
    search = given(target.search)
    return retrieval_scores(search.find(query, gallery), search.people, rng=target.rng, chance=chance, note=note)


def rank_one_on_originals(target: AttackTarget) -> float | None:
    """Rank-1 of the target's recogniser and search on the originals alone; None where something is not known."""
    if target.originals is None or target.search is None or target.recogniser is None:
        return None
    raw = target.original_features()
    return target.search.find(raw, raw).rank(1)


def _neutral(target: AttackTarget) -> Features:
    """(N, D) features of 8-bit pictures, as a release would hold them."""
    neutral, originals, recogniser = given(target.neutral), given(target.originals), given(target.recogniser)
    features = np.empty((len(originals), recogniser.dim), dtype=np.float32)
    for part, images in originals.batches():
        made = (neutral(images).clamp(0, 1) * 255).round() / 255
        features[part] = HeldPictures(made).features(recogniser)
    return features
