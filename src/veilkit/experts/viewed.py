"""An expert that is shown a part of each picture: identity experts of faces, of wide crops."""

from __future__ import annotations

import hashlib
from dataclasses import replace

from torch import Tensor

from veilkit.experts.alignment import VIEWS, view
from veilkit.experts.base import Embedder, ExpertInfo, check_images
from veilkit.experts.names import VIEW_SIGN
from veilkit.experts.supervisors import load_identity


class Viewed(Embedder):
    """An embedder of the view `name` (of `alignment.VIEWS`) of wide crops; square pictures only."""

    def __init__(self, embedder: Embedder, name: str) -> None:
        _ = VIEWS[name]  # an unknown one is told now
        self._embedder, self._view = embedder, name

    @property
    def info(self) -> ExpertInfo:
        """The embedder's, with the view in name and hash: what it sees belongs to what its features depend on."""
        info = self._embedder.info
        digest = hashlib.sha256(f"{info.sha256} {VIEWS[self._view]}".encode()).hexdigest()
        return replace(info, name=f"{info.name}{VIEW_SIGN}{self._view}", sha256=digest)

    def embed(self, images: Tensor) -> Tensor:
        """(N, 3, S, S) -> (N, D)."""
        check_images(images)
        return self._embedder.embed(view(images, self._view))


def names_view(name: str) -> bool:
    """Whether a name is one of `load_viewed`: dlib@dlib, mobilefacenet@arcface."""
    return name.rpartition(VIEW_SIGN)[2] in VIEWS and VIEW_SIGN in name


def load_viewed(name: str) -> Viewed:
    """The identity expert that stands before the @, and the view behind it."""
    expert, _, shown = name.rpartition(VIEW_SIGN)
    return Viewed(load_identity(expert), shown)
