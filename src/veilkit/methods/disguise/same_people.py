"""Who is the same person, by their faces: clusters of identity vectors."""

from __future__ import annotations

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

_MOST = 20_000  # faces; all pairs are compared


def cluster_people(vectors: Tensor, threshold: float) -> Tensor:
    """Unit vectors (N, D) to the middles (P, D), of length 1, of clusters whose mean cosine is at least `threshold`.

    Average linkage; the middles come in the order of their first face.
    """
    from sklearn.cluster import AgglomerativeClustering  # half a second that only clustering has to pay for

    from veilkit.errors import DataError

    if len(vectors) > _MOST:
        raise DataError(f"at most {_MOST} faces can be compared with each other, but got {len(vectors)}: give labels")
    if len(vectors) < 2:
        return vectors.clone()
    unit = F.normalize(vectors.double())
    clusters = AgglomerativeClustering(
        n_clusters=None, metric="cosine", linkage="average", distance_threshold=1 - threshold
    ).fit(unit.numpy())
    labels = np.asarray(clusters.labels_)
    first = {int(label): place for place, label in reversed(list(enumerate(labels)))}
    middles = [unit[torch.from_numpy(labels == label)].mean(0) for label in sorted(first, key=first.__getitem__)]
    return F.normalize(torch.stack(middles)).float()


def known_person(vector: Tensor, middles: Tensor, threshold: float) -> int | None:
    """The nearest of `middles` (P, D) to a unit vector (D,), where its cosine is at least `threshold`."""
    if not len(middles):
        return None
    cosines = middles @ vector
    best = int(cosines.argmax())
    return best if float(cosines[best]) >= threshold else None
