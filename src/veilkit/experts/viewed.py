"""An identity expert that is shown the part of a wide crop that it is used to."""

from __future__ import annotations

import hashlib
from dataclasses import replace

from torch import Tensor

from veilkit.experts.alignment import VIEWS, view
from veilkit.experts.base import Embedder, ExpertInfo, check_images


class Viewed(Embedder):
    """Takes wide crops (see `alignment.WIDE`) and shows the expert one of `alignment.VIEWS` of each."""

    def __init__(self, expert: Embedder, shown: str) -> None:
        _ = VIEWS[shown]  # an unknown one is told now
        self._expert, self._view = expert, shown

    @property
    def info(self) -> ExpertInfo:
        """Who the expert is; the hash also stands for what it is shown."""
        info = self._expert.info
        place = f"{info.sha256} {self._view} {VIEWS[self._view]}"
        return replace(info, sha256=hashlib.sha256(place.encode()).hexdigest())

    def embed(self, images: Tensor) -> Tensor:
        """(N, 3, S, S) -> (N, D)."""
        check_images(images)
        return self._expert.embed(view(images, self._view))
