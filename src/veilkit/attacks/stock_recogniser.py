"""A stock recogniser on protected pictures: the least that anybody can try (L0)."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from veilkit.attacks.base import AttackTarget, Need
from veilkit.attacks.headline import Headline
from veilkit.attacks.person_search import PersonSearch
from veilkit.types import Level


class StockRecogniser(PersonSearch):
    """Searches protected pictures among protected pictures with a recogniser that has never seen the protection.

    The adversary holds only the release: can it tell which protected pictures show one person?
    """

    name = "stock_recogniser"
    summary = "finds the same person among protected pictures with a recogniser that knows nothing of the protection"
    level = Level.L0
    searches = "protected", "protected"
    headline = Headline(
        "People told apart in the release",
        "{Judge} that sees only the protected pictures finds the right person {value} of the time{interval}",
        beside_originals=True,
    )
    needs = frozenset({Need.IMAGES, Need.IDENTITIES, Need.EXPERT})

    def gallery(self, target: AttackTarget) -> NDArray[np.float32]:
        """The protected pictures themselves."""
        assert target.protected is not None
        assert target.recogniser is not None
        return target.protected.features(target.recogniser)
