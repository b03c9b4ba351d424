"""What public pictures teach of patches: which come from one picture, where in it, and what true seams look like.

The public pictures are of generated people, whom anybody can draw.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import torch
from numpy.typing import NDArray
from sklearn.linear_model import LogisticRegression
from torch import Tensor

from veilkit.attacks.jigsaw.grid import Floats, Grid, Patches, Seams
from veilkit.attacks.pictures import resized
from veilkit.synthetic.people import render_person

_GROUP = 4  # public pictures whose patches are told apart at a time
_HARD = 8  # of the best wrong neighbours of each patch are learned from
_LIMIT = 8.0  # log-odds beyond are not believed
_WORLD = 271828  # a seed of its own: nobody from here is in a set that somebody protects
_CAMERAS = 8
_SMALLEST, _LARGEST = (32, 16), (256, 128)
_CORNERS = 3  # a patch is described by colours on so many by so many points


@dataclass(frozen=True, slots=True, eq=False)
class Lessons:
    """Learned from public pictures cut along one grid. Answers are in nats (log-odds, log-likelihood ratios)."""

    seams: LogisticRegression
    rows: LogisticRegression | None
    columns: LogisticRegression | None
    centre: Floats
    own: Floats
    joint: Floats

    @classmethod
    def learn(cls, public: Tensor, grid: Grid) -> Lessons:
        """From public images (N, 3, H, W), at least 4, of the size of the pictures under attack."""
        rows, columns = grid.shape((public.shape[2], public.shape[3]))
        patches = grid.cut(public)
        described = describe(patches)
        centre = described.mean(axis=0)
        place = np.arange(len(patches)) % (rows * columns)
        own, joint = _two_covariances((described - centre).reshape(len(public), rows * columns, -1))
        return cls(
            _learn_seams(patches, (rows, columns)),
            _learn_places(described - centre, place // columns),
            _learn_places(described - centre, place % columns),
            centre,
            own,
            joint,
        )

    def neighbours(self, costs: Floats) -> Floats:
        """Log-odds (n, n), within [-8, 8], that patch j follows patch i, from the costs (n, n) of their seams."""
        odds = self.seams.decision_function(_seam_features(costs).reshape(-1, 3)).reshape(costs.shape)
        believed: Floats = np.clip(odds, -_LIMIT, _LIMIT).astype(np.float32)
        return believed

    def places(self, described: Floats, shape: tuple[int, int]) -> Floats:
        """(n, rows columns): how much more a place is probable for a patch than it is for any, in nats."""
        row, column = (
            np.zeros((len(described), count))
            if model is None
            else model.predict_log_proba(described - self.centre) + np.log(count)
            for model, count in ((self.rows, shape[0]), (self.columns, shape[1]))
        )
        both = row[:, :, None] + column[:, None, :]
        return np.clip(both, -_LIMIT, _LIMIT).reshape(len(described), -1).astype(np.float32)

    def same_source(self, described: Floats) -> Floats:
        """(n, n): log-likelihood ratio of two patches coming from one picture and not from two.

        The two-covariance model: a patch is its picture's mean, normal with covariance B, and a rest of covariance W.
        """
        centred = described - self.centre
        alone = np.einsum("ni,ij,nj->n", centred, self.own, centred) / 2
        both = alone[:, None] + alone[None, :] + centred @ self.joint @ centred.T
        believed: Floats = np.clip(both, -_LIMIT, _LIMIT).astype(np.float32)
        return believed


def describe(patches: Patches) -> Floats:
    """(n, D) colours on a coarse lattice, contrast, and strength of steps across, down and of the second order."""
    count, height, width, _ = patches.shape
    at = [np.array_split(np.arange(side), min(side, _CORNERS)) for side in (height, width)]
    means = [patches[:, r[0] : r[-1] + 1, c[0] : c[-1] + 1].mean(axis=(1, 2)) for r in at[0] for c in at[1]]
    across, down = np.diff(patches, axis=2), np.diff(patches, axis=1)
    fine = np.diff(across, axis=2) if width > 2 else across
    steps = [np.abs(each).mean(axis=(1, 2, 3)) for each in (across, down, fine)]
    strengths = np.log(np.stack([patches.std(axis=(1, 2)).mean(axis=1), *steps], axis=1) + 1e-3)
    return np.concatenate([np.stack(means, axis=1).reshape(count, -1), 0.2 * strengths], axis=1).astype(np.float32)


def _seam_features(costs: Floats) -> Floats:
    """(n, n, 3): the cost, and how much it exceeds the best other cost in its row and in its column."""
    kept = np.where(np.isfinite(costs), costs, 50.0).astype(np.float32)
    return np.stack([kept, kept - _best_other(kept), kept - _best_other(kept.T).T], axis=2)


def _best_other(costs: Floats) -> Floats:
    """(n, n): the least of each row, where an entry itself does not count."""
    if costs.shape[1] < 2:
        return costs
    order = np.argpartition(costs, 1, axis=1)[:, :2]
    two = np.take_along_axis(costs, order, axis=1)
    least = np.where(two[:, :1] <= two[:, 1:], order[:, :1], order[:, 1:])
    is_least = np.arange(costs.shape[1])[None] == least
    best: Floats = np.where(is_least, two.max(axis=1)[:, None], two.min(axis=1)[:, None])
    return best


def _learn_seams(patches: Patches, shape: tuple[int, int]) -> LogisticRegression:
    rows, columns = shape
    cells = rows * columns
    features, truth = [], []
    for start in range(0, len(patches) - _GROUP * cells + 1, _GROUP * cells):
        part = patches[start : start + _GROUP * cells]
        index = np.arange(len(part))
        for seams, stride, has in (
            (Seams.right_of(part), 1, index % columns < columns - 1),
            (Seams.below(part), columns, index % cells < cells - columns),
        ):
            costs = seams.costs(index, index)
            table = _seam_features(costs)
            right = np.zeros(costs.shape, dtype=np.bool_)
            right[index[has], index[has] + stride] = True
            hard = np.argsort(np.where(right, np.inf, costs), axis=1)[:, :_HARD]
            wrong = table[index[:, None], hard].reshape(-1, 3)
            features += [table[right], wrong]
            truth += [np.ones(int(right.sum()), dtype=np.int64), np.zeros(len(wrong), dtype=np.int64)]
    return LogisticRegression(max_iter=1000).fit(np.concatenate(features), np.concatenate(truth))


def _learn_places(described: Floats, place: NDArray[np.int64]) -> LogisticRegression | None:
    return None if len(np.unique(place)) < 2 else LogisticRegression(max_iter=2000, C=3.0).fit(described, place)


def _two_covariances(described: Floats) -> tuple[Floats, Floats]:
    """What a patch weighs alone and two jointly, each (D, D), from descriptions (N, cells, D) centred over all."""
    count, cells, dim = described.shape
    means = described.mean(axis=1, keepdims=True)
    rest = (described - means).reshape(-1, dim)
    within = rest.T @ rest / max(1, len(rest) - count) + 1e-4 * np.eye(dim)
    between = means[:, 0].T @ means[:, 0] / count - within / cells
    values, vectors = np.linalg.eigh(between)
    between = (vectors * np.maximum(values, 1e-6)) @ vectors.T
    total = between + within
    inverse = np.linalg.inv(total)
    conditional = np.linalg.inv(total - between @ inverse @ between)
    return (inverse - conditional).astype(np.float32), (inverse @ between @ conditional).astype(np.float32)


@lru_cache(maxsize=2)
def generated_people(size: tuple[int, int], count: int) -> Tensor:
    """Images (N, 3, H, W) of a size (H, W) of people whom anybody can draw."""
    height, width = (min(max(side, least), most) for side, least, most in zip(size, _SMALLEST, _LARGEST, strict=True))
    drawn = [
        render_person(_WORLD, identity, 1 + identity % _CAMERAS, 0, height=height, width=width)
        for identity in range(1, count + 1)
    ]
    return resized(torch.from_numpy(np.stack(drawn)).permute(0, 3, 1, 2).float() / 255, size)
