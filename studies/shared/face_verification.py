"""Verification of faces by LFW's official protocol, in the test folds alone.

The threshold of a fold is the one that does best on the other test folds, so that it never saw a training person, nor
the fold that it judges.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import numpy as np
import torch.nn.functional as F

from studies.shared.face_data import pairs_of, read_middles
from veilkit.datasets.lfw import Lfw
from veilkit.metrics import accuracy_by_fold, bootstrap_interval, equal_error_rate, tpr_at_fpr
from veilkit.networks.reid import ReidNetwork
from veilkit.rng import Randomness
from veilkit.training.retrieval import embed_pixels
from veilkit.types import Split

RATES = (1e-2, 1e-3)  # false positive rates at which true ones are told


def verify(
    network: ReidNetwork,
    lfw: Lfw,
    tested: Split,
    *,
    folds: Collection[int],
    middle: int,
    size: tuple[int, int],
    seed: int,
) -> dict[str, Any]:
    """Accuracy on the official pairs of `folds`; EER and TPR over all pairs of the pictures of `tested`.

    Similarity is the cosine of features, each the mean of a face's and its mirror image's. The accuracy's interval
    draws people again, a pair with the person of its first picture; thresholds stay as they were chosen.
    """
    pairs = pairs_of(lfw, folds)
    persons = {record.path: str(record.identity) for record in lfw.images.records}
    numbers = {person: number for number, person in enumerate(sorted(set(persons.values())))}
    sides = [pair.first for pair in pairs], [pair.second for pair in pairs]
    chosen = [record.path for record in tested.records]
    paths = sorted({*sides[0], *sides[1], *chosen})
    place = {path: index for index, path in enumerate(paths)}
    pixels = read_middles(lfw.images.root, paths, middle, size)
    features = F.normalize(embed_pixels(network, pixels).double()).numpy()

    first, second = (features[[place[path] for path in side]] for side in sides)
    scores = (first * second).sum(1)
    same, fold = np.array([pair.same for pair in pairs]), np.array([pair.fold for pair in pairs])
    found = accuracy_by_fold(scores, same.astype(np.int64), fold)
    thresholds = found.thresholds[np.searchsorted(np.unique(fold), fold)]
    interval = bootstrap_interval(
        ((scores >= thresholds) == same).astype(np.float64),
        np.array([numbers[persons[path]] for path in sides[0]]),
        generator=Randomness.from_seed(seed).child("bootstrap").numpy(),
    )

    rows, people = features[[place[path] for path in chosen]], np.array([numbers[persons[path]] for path in chosen])
    above = np.triu_indices(len(rows), 1)
    similar, alike = (rows @ rows.T)[above], people[above[0]] == people[above[1]]
    genuine, impostor = similar[alike], similar[~alike]
    return {
        "accuracy": [interval.value, interval.low, interval.high],
        "by_fold": found.accuracies.tolist(),
        "eer": equal_error_rate(genuine, impostor),
        **{f"tpr@{rate:g}": tpr_at_fpr(genuine, impostor, rate) for rate in RATES},
        "pairs": len(pairs),
        "people": len(set(people.tolist())),
        "test_pictures": len(chosen),
        "genuine": len(genuine),
        "impostor": len(impostor),
    }
