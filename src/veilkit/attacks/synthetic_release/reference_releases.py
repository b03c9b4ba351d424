"""Unpaired releases that show everything or nothing, on which attacks prove that they work."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from typing import TypeAlias

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from veilkit.attacks.pictures import NoisePictures, Pictures, embedded
from veilkit.attacks.synthetic_release.base import LabelledPictures, UnpairedRelease
from veilkit.attacks.synthetic_release.nearest import Vectors, distances, shrunk
from veilkit.experts import Embedder
from veilkit.metrics.inputs import l2_normalised
from veilkit.rng import Randomness

Look: TypeAlias = Callable[[Tensor], Vectors]
"""What a student sees in images (N, 3, H, W): vectors (N, D) of length one."""

_SURE = 10.0  # logit of the right class where labels are as good as given


def small_pixels(images: Tensor) -> Vectors:
    """As `nearest.pixel_vectors`, of a batch."""
    return np.asarray(shrunk(images).numpy())


class RememberedLook:
    """A recogniser's features, computed once for each picture: many students look at the same candidates."""

    def __init__(self, recogniser: Embedder) -> None:
        self._recogniser = recogniser
        self._seen: dict[bytes, Vectors] = {}

    def __call__(self, images: Tensor) -> Vectors:
        """(N, 3, H, W) in [0, 1] -> (N, D) of length one."""
        names = [hashlib.blake2b(image.contiguous().numpy().data, digest_size=16).digest() for image in images]
        new = [place for place, name in enumerate(names) if name not in self._seen]
        if new:
            found = l2_normalised(embedded(self._recogniser, images[new]))
            self._seen.update(zip((names[place] for place in new), found, strict=True))
        return np.stack([self._seen[name] for name in names])


def open_release(members: LabelledPictures, look: Look = small_pixels) -> UnpairedRelease:
    """The training pictures themselves, labels that name their class, and a student that has memorised them."""
    _, place = np.unique(members.people, return_inverse=True)
    labels = np.zeros((len(members), _classes(place)), dtype=np.float32)
    labels[np.arange(len(members)), place] = _SURE
    return UnpairedRelease(members.pictures, members.people, labels, NearestStudent(members.pictures, place, look))


def noise_release(members: LabelledPictures, rng: Randomness, look: Look = small_pixels) -> UnpairedRelease:
    """Noise in place of each training picture, random labels, and a student that has memorised the noise."""
    _, place = np.unique(members.people, return_inverse=True)
    pictures = NoisePictures(members.pictures, rng.child("pictures"))
    labels = rng.child("labels").normal(len(members), _classes(place)).numpy()
    return UnpairedRelease(pictures, members.people, labels, NearestStudent(pictures, place, look))


class NearestStudent:
    """A classifier that knows its training pictures by heart: a class's logit is -log of the distance to its nearest.

    Distances are those of what it sees, plus 1e-3. classes: (N,) from 0.
    """

    def __init__(self, pictures: Pictures, classes: NDArray[np.int64], look: Look = small_pixels) -> None:
        self._pictures, self._classes, self._look = pictures, classes, look
        self._known: Vectors | None = None

    def __call__(self, images: Tensor) -> Tensor:
        """(N, 3, H, W) in [0, 1] -> logits (N, C)."""
        if self._known is None:
            parts = [(part, self._look(batch)) for part, batch in self._pictures.batches()]
            self._known = np.empty((len(self._classes), parts[0][1].shape[1]), dtype=np.float32)
            for part, seen in parts:
                self._known[part] = seen
        far = distances(self._look(images), self._known)
        near = np.full((len(far), _classes(self._classes)), 2.0, dtype=np.float32)  # no chord is longer
        np.minimum.at(near.T, self._classes, far.T)
        return torch.from_numpy(-np.log(near + 1e-3))


def _classes(place: NDArray[np.int64]) -> int:
    return max(2, int(place.max()) + 1)
