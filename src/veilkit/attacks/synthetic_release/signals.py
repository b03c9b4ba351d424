"""What speaks for membership: statistics of a candidate picture, seen through a release; larger for members.

The candidate's class is never used: classes are pseudonyms, so the adversary asks for the most likely one.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import TypeAlias

import numpy as np
import torch
from numpy.typing import NDArray

from veilkit.attacks.pictures import Pictures
from veilkit.attacks.synthetic_release.base import Model, UnpairedNeed, UnpairedRelease
from veilkit.attacks.synthetic_release.nearest import distances, feature_vectors, nearest, pixel_vectors
from veilkit.attacks.target import given
from veilkit.errors import DataError
from veilkit.experts import Embedder
from veilkit.types import Level

Values = NDArray[np.float64]
Statistics: TypeAlias = dict[str, Values]
"""(N,) for each statistic's name."""

_RIDGE = 1e-2
_MOST_LABELLED = 3000  # pictures that the label model is fitted on: its cost grows with the cube


class Question(StrEnum):
    """What is asked about a candidate."""

    PERSON = "person"
    PICTURE = "picture"


@dataclass(frozen=True, slots=True, eq=False)
class Signal:
    """One way to look at candidates.

    title, how: its words in a headline and, by question, in a summary. knows: all that its adversary holds, besides
    the candidates themselves. chosen: of the statistics one for each question, fixed beforehand: the best of many
    beats chance.
    """

    name: str
    title: str
    how: dict[Question, str]
    knows: str
    level: Level
    needs: dict[Question, frozenset[UnpairedNeed]]
    chosen: dict[Question, str]
    statistics: Callable[[UnpairedRelease, Pictures, Embedder | None], Statistics]


def set_statistics(release: UnpairedRelease, candidates: Pictures, recogniser: Embedder | None) -> Statistics:
    """Minus the distance to the nearest synthetic picture, in small pixels and in the recogniser's features."""
    found = {"pixels": -nearest(pixel_vectors(candidates), pixel_vectors(release.synthetic))[0][:, 0]}
    if recogniser is not None:
        vectors = feature_vectors(candidates, recogniser), feature_vectors(release.synthetic, recogniser)
        found["recogniser"] = -nearest(*vectors)[0][:, 0]
    return {name: values.astype(np.float64) for name, values in found.items()}


def label_statistics(release: UnpairedRelease, candidates: Pictures, recogniser: Embedder | None) -> Statistics:
    """Certainty of a model of the soft labels: kernel ridge regression from the recogniser's features to logits.

    It follows the labels exactly at the synthetic pictures and falls back to their mean far away, so it is certain
    where the release knows something.
    """
    recogniser = given(recogniser)
    known, labels = feature_vectors(release.synthetic, recogniser), given(release.soft_labels).astype(np.float64)
    chosen = np.unique(np.linspace(0, len(known) - 1, _MOST_LABELLED).astype(np.int64))
    known, labels = known[chosen], labels[chosen]
    apart = distances(known, known).astype(np.float64)
    width = float(np.median(apart[~np.eye(len(apart), dtype=np.bool_)])) if len(apart) > 1 else 1.0
    scale = 2.0 * max(width, 1e-6) ** 2
    kernel = np.exp(-(apart**2) / scale)
    mean = labels.mean(axis=0)
    system = torch.from_numpy(kernel + _RIDGE * np.eye(len(kernel)))
    weights = torch.cholesky_solve(torch.from_numpy(labels - mean), torch.linalg.cholesky(system)).numpy()
    near = distances(feature_vectors(candidates, recogniser), known).astype(np.float64)
    return certainty(mean + np.exp(-(near**2) / scale) @ weights)


def student_statistics(release: UnpairedRelease, candidates: Pictures, recogniser: Embedder | None) -> Statistics:
    """Certainty of the student, and the length of its features where they are known."""
    found = certainty(answers(given(release.student), candidates))
    if release.student_features is not None:
        found["feature norm"] = np.linalg.norm(answers(release.student_features, candidates), axis=1)
    return found


def certainty(logits: Values) -> Statistics:
    """Of logits (N, C), C at least 2: log-odds of the likeliest class, minus the entropy, and the log-sum-exp.

    The log-odds log(p / (1 - p)) are LiRA's scaling of a confidence (Carlini et al. 2022, Section V-A): they are
    nearer to a normal distribution than p.
    """
    if logits.ndim != 2 or logits.shape[1] < 2:
        raise DataError(f"expected logits of shape (N, C) with at least 2 classes, but got {logits.shape}")
    rows = torch.from_numpy(np.sort(logits, axis=1))
    log_p = torch.log_softmax(rows, dim=1)
    return {
        "confidence": (rows[:, -1] - torch.logsumexp(rows[:, :-1], dim=1)).numpy(),
        "entropy": (log_p.exp() * log_p).sum(dim=1).numpy(),
        "energy": torch.logsumexp(rows, dim=1).numpy(),
    }


@torch.no_grad()
def answers(model: Model, pictures: Pictures) -> Values:
    """(N, D) answers of a model to all pictures; raises DataError where they are not finite or not of that shape."""
    found: Values | None = None
    for part, images in pictures.batches():
        values = model(images).cpu().double().numpy()
        if values.ndim != 2 or len(values) != len(part) or not np.isfinite(values).all():
            raise DataError(
                f"the student was expected to give finite values of shape ({len(part)}, D), but gave {values.shape}"
                f"{'' if np.isfinite(values).all() else ' with NaN or infinity'}; check its weights"
            )
        if found is None:
            found = np.empty((len(pictures), values.shape[1]))
        found[part] = values
    return given(found)


SET = Signal(
    name="set",
    title="the synthetic pictures alone",
    how={
        Question.PERSON: "how near other pictures of them come to the synthetic pictures",
        Question.PICTURE: "how near they come to the synthetic pictures",
    },
    knows="the synthetic pictures and a stock recogniser",
    level=Level.L0,
    needs={Question.PERSON: frozenset({UnpairedNeed.EXPERT}), Question.PICTURE: frozenset()},
    chosen={Question.PERSON: "recogniser", Question.PICTURE: "pixels"},
    statistics=set_statistics,
)
LABELS = Signal(
    name="labels",
    title="the soft labels",
    how=dict.fromkeys(Question, "the certainty of a model fitted to the soft labels"),
    knows="the synthetic pictures with their soft labels and a stock recogniser; not the pool, so candidates go "
    "through a model of the labels that is fitted on the release",
    level=Level.L0,
    needs=dict.fromkeys(Question, frozenset({UnpairedNeed.SOFT_LABELS, UnpairedNeed.EXPERT})),
    chosen=dict.fromkeys(Question, "confidence"),
    statistics=label_statistics,
)
STUDENT = Signal(
    name="student",
    title="a student of the release",
    how=dict.fromkeys(Question, "the certainty of a student trained on the release"),
    knows="a network trained on the release, which anybody who holds the release can train",
    level=Level.L2,
    needs=dict.fromkeys(Question, frozenset({UnpairedNeed.STUDENT})),
    chosen=dict.fromkeys(Question, "confidence"),
    statistics=student_statistics,
)
