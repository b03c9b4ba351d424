"""Pictures that an attack may look at, of any number and of mixed sizes, never all in memory at once."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from torch import Tensor

from veilkit.errors import DataError
from veilkit.experts import Embedder
from veilkit.rng import Randomness

Features = NDArray[np.float32]
SMALLEST = 11  # pixels a side that SSIM's window needs
_BATCH = 64
_BATCH_PIXELS = 4_000_000  # at most so many in a batch, unless a single picture has more


class Pictures(ABC):
    """An ordered collection of pictures; a subclass gives `sizes` and `load`."""

    @property
    @abstractmethod
    def sizes(self) -> NDArray[np.int64]:
        """(N, 2): height and width of each picture."""

    @abstractmethod
    def load(self, index: int) -> Tensor:
        """One picture, (3, H, W) float32 in [0, 1]."""

    def __len__(self) -> int:
        return len(self.sizes)

    def batches(self, indices: Sequence[int] | NDArray[np.int64] | None = None) -> Iterator[tuple[list[int], Tensor]]:
        """Every picture (of `indices`) once: positions, and images (B, 3, H, W) of one size."""
        wanted = range(len(self)) if indices is None else indices
        groups: dict[tuple[int, int], list[int]] = {}
        for index in wanted:
            height, width = self.sizes[index]
            groups.setdefault((int(height), int(width)), []).append(int(index))
        for (height, width), members in groups.items():
            count = max(1, min(_BATCH, _BATCH_PIXELS // (height * width)))
            for start in range(0, len(members), count):
                part = members[start : start + count]
                yield part, torch.stack([self.load(index) for index in part])

    def features(self, embedder: Embedder) -> Features:
        """Raw features (N, D) of all pictures, in their order."""
        found = np.empty((len(self), embedder.dim), dtype=np.float32)
        for part, images in self.batches():
            found[part] = embedded(embedder, images)
        return found


class HeldPictures(Pictures):
    """Pictures that are in memory: tensors (3, H, W), float32 in [0, 1]."""

    def __init__(self, images: Sequence[Tensor] | Tensor) -> None:
        self._images: list[Tensor] = list(images)
        self._sizes = np.array([tuple(image.shape[1:]) for image in self._images], dtype=np.int64).reshape(-1, 2)

    @property
    def sizes(self) -> NDArray[np.int64]:
        """(N, 2): height and width of each picture."""
        return self._sizes

    def load(self, index: int) -> Tensor:
        """One picture, (3, H, W) float32 in [0, 1]."""
        return self._images[index]


class SomePictures(Pictures):
    """Some of other pictures, in the order of `indices`."""

    def __init__(self, pictures: Pictures, indices: Sequence[int] | NDArray[np.int64]) -> None:
        self._pictures, self._indices = pictures, np.asarray(indices, dtype=np.int64)

    @property
    def sizes(self) -> NDArray[np.int64]:
        """(N, 2): height and width of each picture."""
        return self._pictures.sizes[self._indices]

    def load(self, index: int) -> Tensor:
        """One picture, (3, H, W) float32 in [0, 1]."""
        return self._pictures.load(int(self._indices[index]))

    def features(self, embedder: Embedder) -> Features:
        """Raw features (N, D); taken from all pictures', which are usually known already."""
        return self._pictures.features(embedder)[self._indices]


class NoisePictures(Pictures):
    """Uniform noise in the sizes of other pictures, each independent of everything: no attack may find anything."""

    def __init__(self, like: Pictures, rng: Randomness) -> None:
        self._sizes, self._rng = like.sizes, rng
        self._features: dict[str, Features] = {}

    @property
    def sizes(self) -> NDArray[np.int64]:
        """(N, 2): height and width of each picture."""
        return self._sizes

    def load(self, index: int) -> Tensor:
        """One picture, (3, H, W) float32 in [0, 1]."""
        height, width = self._sizes[index]
        return self._rng.child("picture", index).uniform(3, int(height), int(width))

    def features(self, embedder: Embedder) -> Features:
        """Raw features (N, D), computed once for each expert."""
        if embedder.info.fingerprint not in self._features:
            self._features[embedder.info.fingerprint] = super().features(embedder)
        return self._features[embedder.info.fingerprint]


@torch.no_grad()
def embedded(embedder: Embedder, images: Tensor) -> Features:
    """Features (B, D) of images (B, 3, H, W); raises DataError where they are not finite or of another shape."""
    features = embedder.embed(images).cpu().numpy().astype(np.float32, copy=False)
    if features.shape != (len(images), embedder.dim) or not np.isfinite(features).all():
        raise DataError(
            f"the expert {embedder.name!r} was expected to give finite features ({len(images)}, {embedder.dim}), "
            f"but gave {features.shape}{'' if np.isfinite(features).all() else ' with NaN or infinity'}; "
            "check its weights and normalisation"
        )
    return features


def resized(images: Tensor, size: tuple[int, int]) -> Tensor:
    """Images (N, 3, H, W) in [0, 1] at another size (bilinear, smoothed when shrinking)."""
    if tuple(images.shape[2:]) == size:
        return images
    return F.interpolate(images, size=size, mode="bilinear", align_corners=False, antialias=True).clamp_(0, 1)
