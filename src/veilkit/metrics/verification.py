"""Verification: are two images of one person? From similarity scores of genuine and impostor pairs.

A pair is accepted when its score is at least the threshold. FPR is the share of impostor pairs accepted, TPR that of
genuine pairs accepted. The curve is never smoothed: its points are those that some threshold really reaches.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from veilkit.errors import ConfigError, DataError
from veilkit.metrics.inputs import Values, finite_values, whole_numbers


@dataclass(frozen=True, slots=True, eq=False)
class RocCurve:
    """The step curve: one point for each distinct score, from "accept none" (threshold infinity) to "accept all"."""

    thresholds: NDArray[np.float64]  # (T,) falling
    fpr: NDArray[np.float64]  # (T,) rising from 0 to 1
    tpr: NDArray[np.float64]  # (T,) rising from 0 to 1


def roc(genuine: Values, impostor: Values) -> RocCurve:
    """The ROC of similarity scores of genuine and impostor pairs."""
    genuine = np.sort(finite_values(genuine, "genuine scores"))
    impostor = np.sort(finite_values(impostor, "impostor scores"))
    thresholds = np.concatenate([[np.inf], np.unique(np.concatenate([genuine, impostor]))[::-1]])
    return RocCurve(
        thresholds=thresholds,
        fpr=(len(impostor) - np.searchsorted(impostor, thresholds, "left")) / len(impostor),
        tpr=(len(genuine) - np.searchsorted(genuine, thresholds, "left")) / len(genuine),
    )


def tpr_at_fpr(genuine: Values, impostor: Values, fpr: float) -> float:
    """The highest TPR of any threshold that accepts at most a share `fpr` of the impostor pairs.

    Nothing is interpolated, so with fewer than 1 / fpr impostor pairs none of them may be accepted.

    >>> tpr_at_fpr([0.9, 0.8, 0.4], [0.7, 0.3, 0.2, 0.1], fpr=0.2)
    0.6666666666666666
    """
    if not 0.0 <= fpr <= 1.0:
        raise ConfigError(f"fpr must lie in [0, 1], but got {fpr}")
    genuine = finite_values(genuine, "genuine scores")
    impostor = np.sort(finite_values(impostor, "impostor scores"))[::-1]
    # A product such as 0.07 * 100 rounds to just above or below the whole number that is meant.
    allowed = int(np.floor(fpr * len(impostor) + 1e-9))
    if allowed >= len(impostor):
        return 1.0
    # The first impostor that must be refused, and with it every score equal to it.
    return float((genuine > impostor[allowed]).mean())


def equal_error_rate(genuine: Values, impostor: Values) -> float:
    """The error rate where FPR and FNR = 1 - TPR are equal, in [0, 1].

    Steps seldom meet exactly; between the two thresholds around the crossing the value is that of choosing one of
    them at random, the straight line between their points.

    >>> equal_error_rate([0.9, 0.8, 0.7, 0.2], [0.6, 0.3, 0.1, 0.0])
    0.25
    """
    curve = roc(genuine, impostor)
    gap = curve.fpr - (1.0 - curve.tpr)  # rises from -1 to 1
    after = int(np.argmax(gap >= 0.0))
    share = -gap[after - 1] / (gap[after] - gap[after - 1])
    return float(curve.fpr[after - 1] + share * (curve.fpr[after] - curve.fpr[after - 1]))


def auc(genuine: Values, impostor: Values) -> float:
    """The area under the ROC: how often a genuine pair scores above an impostor pair, ties counting half.

    >>> auc([0.9, 0.5], [0.5, 0.1])
    0.875
    """
    genuine = finite_values(genuine, "genuine scores")
    impostor = np.sort(finite_values(impostor, "impostor scores"))
    below = np.searchsorted(impostor, genuine, "left") + np.searchsorted(impostor, genuine, "right")
    return float(below.mean() / (2 * len(impostor)))


@dataclass(frozen=True, slots=True, eq=False)
class FoldAccuracy:
    """Accuracy in each of F folds, at a threshold chosen on the others."""

    accuracies: NDArray[np.float64]  # (F,)
    thresholds: NDArray[np.float64]  # (F,)

    @property
    def mean(self) -> float:
        """Mean accuracy over the folds, in [0, 1]."""
        return float(self.accuracies.mean())

    @property
    def standard_error(self) -> float:
        """Standard error of the mean over the folds (LFW's protocol), sample deviation / sqrt(F)."""
        return float(self.accuracies.std(ddof=1) / np.sqrt(len(self.accuracies)))


def accuracy_by_fold(scores: Values, same: Values, folds: Values) -> FoldAccuracy:
    """LFW's protocol: for each fold, the threshold with the best accuracy on all other folds, judged on this one.

    scores: (N,) similarities; same: (N,) whether the pair is genuine; folds: (N,) the fold's number.
    Candidates lie half-way between neighbouring scores; of equally good ones the highest is taken.
    """
    values = finite_values(scores, "scores")
    genuine = whole_numbers(same, "same", len(values)).astype(np.bool_)
    fold = whole_numbers(folds, "folds", len(values))
    names = np.unique(fold)
    if len(names) < 2:
        raise DataError(
            f"expected pairs of at least 2 folds, to choose on one and judge on another, but got {len(names)}"
        )
    thresholds = np.array([_best_threshold(values[fold != name], genuine[fold != name]) for name in names])
    accuracies = [
        ((values[fold == name] >= threshold) == genuine[fold == name]).mean()
        for name, threshold in zip(names, thresholds, strict=True)
    ]
    return FoldAccuracy(np.array(accuracies), thresholds)


def _best_threshold(scores: NDArray[np.float64], genuine: NDArray[np.bool_]) -> float:
    distinct = np.unique(scores)[::-1]
    candidates = np.concatenate([[np.inf], (distinct[:-1] + distinct[1:]) / 2, [-np.inf]])
    right = len(scores) - genuine.sum()  # accepting none is right on all impostors
    gain = np.zeros(len(candidates))
    np.add.at(gain, np.searchsorted(-distinct, -scores) + 1, np.where(genuine, 1, -1))
    return float(candidates[np.argmax(right + np.cumsum(gain))])
