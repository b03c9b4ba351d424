"""How far pictures are from each other: in small pixels, and in a recogniser's features."""

from __future__ import annotations

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray

from veilkit.attacks.pictures import Pictures, SomePictures, resized
from veilkit.experts import Embedder
from veilkit.metrics.inputs import l2_normalised

GRID = (16, 16)  # pixels that a picture is shrunk to: what is left is layout and colour, which copies share
_CHUNK = 128

Vectors = NDArray[np.float32]


class RememberedPictures(SomePictures):
    """Other pictures, read and embedded once however often they are compared."""

    def __init__(self, pictures: Pictures) -> None:
        super().__init__(pictures, np.arange(len(pictures)))
        self._features: dict[str, Vectors] = {}
        self._small: Vectors | None = None

    def features(self, embedder: Embedder) -> Vectors:
        """Raw features (N, D), computed once for each expert."""
        if embedder.sha256 not in self._features:
            self._features[embedder.sha256] = super().features(embedder)
        return self._features[embedder.sha256]

    def small(self) -> Vectors:
        """`pixel_vectors`, computed once."""
        if self._small is None:
            self._small = _pixel_vectors(self)
        return self._small


def pixel_vectors(pictures: Pictures) -> Vectors:
    """(N, 768): each picture at 16 x 16, each colour's mean removed, of length one; distances are chords up to 2.

    Without the last step the flattest pictures would be everybody's nearest neighbours.
    """
    return pictures.small() if isinstance(pictures, RememberedPictures) else _pixel_vectors(pictures)


def _pixel_vectors(pictures: Pictures) -> Vectors:
    found = np.empty((len(pictures), 3 * GRID[0] * GRID[1]), dtype=np.float32)
    for part, images in pictures.batches():
        found[part] = shrunk(images).numpy()
    return found


def shrunk(images: torch.Tensor) -> torch.Tensor:
    """`pixel_vectors` of images (N, 3, H, W) in [0, 1]."""
    small = resized(images, GRID)
    flat = (small - small.mean(dim=(2, 3), keepdim=True)).flatten(1)
    return F.normalize(flat)


def feature_vectors(pictures: Pictures, recogniser: Embedder) -> Vectors:
    """(N, D) features of length one; distances are chords, sqrt(2 - 2 cosine)."""
    return l2_normalised(pictures.features(recogniser))


def distances(query: Vectors, reference: Vectors) -> Vectors:
    """Euclidean distances (Q, R), exactly 0 between equal rows."""
    rows, columns = torch.from_numpy(query), torch.from_numpy(reference)
    return np.asarray(torch.cdist(rows, columns, compute_mode="donot_use_mm_for_euclid_dist").numpy())


def nearest(query: Vectors, reference: Vectors, count: int = 1) -> tuple[Vectors, NDArray[np.int64]]:
    """Distances and positions (Q, K) of the K = min(count, R) nearest reference rows, the nearest first."""
    count = min(count, len(reference))
    far, places = [], []
    for start in range(0, len(query), _CHUNK):
        rows = distances(query[start : start + _CHUNK], reference)
        order = np.argsort(rows, axis=1, kind="stable")[:, :count]
        far.append(np.take_along_axis(rows, order, axis=1))
        places.append(order)
    return np.concatenate(far), np.concatenate(places)
