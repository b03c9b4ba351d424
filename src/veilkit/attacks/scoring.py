"""What tells whether an adversary is right: the originals, who is in them, and where."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from veilkit.attacks.adversary import Masks
from veilkit.attacks.pictures import Pictures, SomePictures
from veilkit.attacks.search import Search


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
    people: NDArray[np.int64] | None = None
    search: Search | None = None
    masks: Masks | None = None
    clean_features: NDArray[np.float32] | None = None

    def truth_of(self, indices: NDArray[np.int64]) -> dict[str, Any]:
        """What is known of these pictures."""
        return {
            "originals": None if self.originals is None else SomePictures(self.originals, indices),
            "people": None if self.people is None else self.people[indices],
            "search": None if self.search is None else self.search.only(indices),
            "masks": None if self.masks is None else self.masks.only(indices),
            "clean_features": None if self.clean_features is None else self.clean_features[indices],
        }
