"""k-same: every face becomes the mean of k people's (Newton et al. 2005), the classical way to hide who it is."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from copy import copy
from dataclasses import dataclass

import torch
from torch import Tensor

from veilkit.configs import check_range
from veilkit.experts.alignment import warp
from veilkit.experts.finders import FaceSettings
from veilkit.methods.base import Item
from veilkit.methods.faces.aligning import wide_alignment
from veilkit.methods.faces.method import Changed, FaceMethod, FoundFace
from veilkit.methods.faces.pasting import colour_matched, feather, paste
from veilkit.methods.mixing import groups_of_people
from veilkit.rng import Randomness
from veilkit.types import ImageBatch, Release

OTHER = "a face beside the largest, which has no group"


@dataclass(frozen=True, slots=True)
class KSameConfig(FaceSettings):
    """people: k, whose faces are averaged. size: pixels a side of the aligned faces. least_side: as for Disguise."""

    people: int = 10
    size: int = 224
    least_side: int = 24

    def __post_init__(self) -> None:
        check_range("people", self.people, 2, 1000)
        check_range("size", self.size, 16, 1024)
        check_range("least_side", self.least_side, 2, 100_000)


class KSame(FaceMethod[KSameConfig]):
    """The largest face of each picture becomes the mean of those of k people, aligned; other faces are hidden.

    Groups are drawn at random, where Newton et al. take the nearest faces: those of one person would meet in a group.
    Everybody of a group gets the same face, in colours of their own. Pictures of a group are brought to one size.
    """

    name = "ksame"
    summary = "the largest face of each picture becomes the mean of k people's faces (k-same); other faces are hidden"
    default = KSameConfig()
    presets = {"crops": KSameConfig(finder="whole"), "people": KSameConfig(finder="head", least_side=4)}  # noqa: RUF012
    random = True
    videos = False  # a frame has no group
    _mean: Tensor | None = None

    def groups(self, items: Sequence[Item], *, rng: Randomness) -> Iterator[tuple[int, ...]]:
        """k people each, no one twice where that is possible."""
        yield from groups_of_people(items, self.config.people, rng=rng, method=self.name)

    def protect(self, batch: ImageBatch, *, rng: Randomness) -> Release:
        """Change the faces of one group."""
        group = copy(self)
        crops = [crop for picture in batch.images if (crop := self._largest(picture)) is not None]
        group._mean = torch.stack(crops).mean(0) if len(crops) > 1 else None
        return FaceMethod.protect(group, batch, rng=rng)

    def change(self, picture: Tensor, face: FoundFace, item: str, *, rng: Randomness) -> Changed:
        """Paste the group's face over the largest one."""
        if face.number > 0 or self._mean is None:
            return Changed(None, OTHER if face.number else "the only face of its group")
        matrix = self._matrix(face)
        if isinstance(matrix, str):
            return Changed(None, matrix)
        mask = feather(self.config.size)
        made = colour_matched(self._mean, self._crop(picture, matrix), mask)
        return Changed(paste(picture, made, matrix, mask), "averaged")

    def _matrix(self, face: FoundFace) -> Tensor | str:
        return wide_alignment(face, self.config.size, least_side=self.config.least_side, most_misfit=0.08)

    def _crop(self, picture: Tensor, matrix: Tensor) -> Tensor:
        return warp(picture[None], matrix[None], (self.config.size,) * 2, beyond="border")[0].clamp(0, 1)

    @torch.no_grad()
    def _largest(self, picture: Tensor) -> Tensor | None:
        faces, _ = self.look(picture, twice=False)
        matrix = self._matrix(faces[0]) if faces else ""
        return None if isinstance(matrix, str) else self._crop(picture, matrix)
