"""Attribute path: what a protection's output tells of a person when the identity put into it tells nothing."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from veilkit.attacks.base import AttackTarget, Need
from veilkit.attacks.headline import Headline
from veilkit.attacks.person_search import PersonSearch, found_among
from veilkit.attacks.pictures import HeldPictures
from veilkit.types import Evidence, Level


class AttributePath(PersonSearch):
    """Searches pictures made with one and the same identity for everybody among raw pictures of the people.

    A protection that swaps identities also sees the picture. Whatever the injected identity hides, and however much
    noise it has, what still tells people apart here is left in every release: in features, skin, the edge of the
    face. "among themselves": such pictures searched among such pictures.

    Who runs the protection makes these pictures; the search is one that anybody can do.
    """

    name = "attribute_path"
    summary = "names the person in pictures that were all given one and the same identity"
    level = Level.L0
    tells_identity = False
    headline = Headline(
        "People told by what is not identity",
        "{Judge} that holds raw pictures of these people names the person {value} of the time{interval} in pictures "
        "that were all given one and the same identity",
        "names",
    )
    needs = frozenset({Need.PAIRS, Need.IDENTITIES, Need.EXPERT, Need.NEUTRAL})

    def __init__(self) -> None:
        self._made: tuple[AttackTarget, NDArray[np.float32]] | None = None

    def queries(self, target: AttackTarget) -> NDArray[np.float32]:
        """Features of the originals with the same identity for everybody, which are made once for a target."""
        if self._made is None or self._made[0] is not target:
            self._made = target, _neutral(target)
        return self._made[1]

    def gallery(self, target: AttackTarget) -> NDArray[np.float32]:
        """The raw pictures."""
        assert target.originals is not None
        assert target.recogniser is not None
        return target.originals.features(target.recogniser)

    def run(self, target: AttackTarget) -> Evidence:
        """Rank-k, mAP and mINP in raw pictures; the same among themselves."""
        evidence = super().run(target)
        chance = dict(evidence.details["chance"])
        among = found_among(target, self.queries(target), self.queries(target), chance)
        scores = (*evidence.scores, *(replace(each, metric=f"among themselves {each.metric}") for each in among))
        chance |= {f"among themselves {metric}": value for metric, value in chance.items()}
        return replace(evidence, scores=scores, details={**evidence.details, "chance": chance})


def _neutral(target: AttackTarget) -> NDArray[np.float32]:
    """(N, D) features of 8-bit pictures, as a release would hold them."""
    assert target.neutral is not None
    assert target.originals is not None
    assert target.recogniser is not None
    features = np.empty((len(target.originals), target.recogniser.dim), dtype=np.float32)
    for part, images in target.originals.batches():
        made = (target.neutral(images).clamp(0, 1) * 255).round() / 255
        features[part] = HeldPictures(made).features(target.recogniser)
    return features
