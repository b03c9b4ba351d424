"""Linkage by person: protected pictures searched among raw pictures of the same people."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from veilkit.attacks.base import AttackTarget, Need
from veilkit.attacks.headline import Headline
from veilkit.attacks.person_search import PersonSearch
from veilkit.types import Level


class Linkage(PersonSearch):
    """Searches each protected picture among raw pictures with a stock recogniser: who is it?

    The picture's own original is not among them; the right person must be named by another raw picture. The adversary
    holds raw pictures of the people, as a photo archive does, but has not trained on protected ones: a recogniser
    that has is a stronger, L2 adversary.
    """

    name = "linkage"
    summary = "names the person in a protected picture by searching it among other, raw pictures"
    level = Level.L0
    searches = "protected", "raw"
    headline = Headline(
        "Protected pictures linked to people",
        "{Judge} that holds other, raw pictures of these people names the person in a protected one {value} of the "
        "time{interval}",
        "names",
        beside_originals=True,
    )
    needs = frozenset({Need.IMAGES, Need.PAIRS, Need.IDENTITIES, Need.EXPERT})

    def gallery(self, target: AttackTarget) -> NDArray[np.float32]:
        """The raw pictures."""
        assert target.originals is not None
        assert target.recogniser is not None
        return target.originals.features(target.recogniser)
