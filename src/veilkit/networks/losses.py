"""Losses of Re-ID training: pure functions of features and labels, and the centres that one of them learns."""

from __future__ import annotations

from typing import Literal

import torch
import torch.nn.functional as F
from torch import Tensor, nn


def pairwise_distances(features: Tensor) -> Tensor:
    """(N, D) -> (N, N) Euclidean distances; the floor keeps the gradient finite where two features coincide."""
    squares = features.square().sum(1)
    return (squares[:, None] + squares[None, :] - 2 * features @ features.T).clamp(min=1e-12).sqrt()


def weighted_regularised_triplet(features: Tensor, labels: Tensor) -> Tensor:
    """AGW's triplet loss without margin (Ye et al., TPAMI 2021, Eq. 4 and 5).

    features (N, D), labels (N,). For each anchor, positives are averaged with softmax weights of their distance and
    negatives with softmax weights of their negative distance; the loss is softplus(positive - negative), mean over
    anchors. Every anchor needs another image of its identity and one of another identity in the batch.
    """
    distances = pairwise_distances(features)
    same = labels[:, None] == labels[None, :]
    itself = torch.eye(len(labels), dtype=torch.bool, device=labels.device)
    positive, negative = same & ~itself, ~same
    toward = distances.masked_fill(~positive, -torch.inf).softmax(1)
    away = (-distances).masked_fill(~negative, -torch.inf).softmax(1)
    return F.softplus((toward * distances).sum(1) - (away * distances).sum(1)).mean()


class Centres(nn.Module):
    """One learned centre per identity; the loss is the mean squared distance to one's own (Wen et al., ECCV 2016)."""

    def __init__(self, identities: int, dimensions: int) -> None:
        super().__init__()
        self.centres = nn.Parameter(torch.randn(identities, dimensions))

    def forward(self, features: Tensor, labels: Tensor) -> Tensor:
        """features (N, D), labels (N,) -> the mean over the batch of the squared distance."""
        return (features - self.centres[labels]).square().sum(1).mean()


def hinge_triplet(features: Tensor, labels: Tensor, *, margin: float, mining: Literal["all", "hard"]) -> Tensor:
    """[|a - p|^2 - |a - n|^2 + margin]_+ over triplets of a batch (PEPR-Net, Eq. 1; Schroff et al., CVPR 2015).

    features (N, D), labels (N,). all: the mean over all triplets that violate the margin, since those that keep it
    teach nothing. hard: each anchor with its farthest positive and nearest negative (Hermans et al. 2017), the mean
    over anchors. Every anchor needs another image of its identity and one of another identity in the batch.
    """
    squares = pairwise_distances(features).square()
    same = labels[:, None] == labels[None, :]
    itself = torch.eye(len(labels), dtype=torch.bool, device=labels.device)
    if mining == "hard":
        farthest = squares.masked_fill(~(same & ~itself), -torch.inf).amax(1)
        nearest = squares.masked_fill(same, torch.inf).amin(1)
        return F.relu(farthest - nearest + margin).mean()
    anchor, positive = torch.nonzero(same & ~itself, as_tuple=True)
    terms = F.relu(squares[anchor, positive][:, None] - squares[anchor] + margin)[~same[anchor]]
    return terms.sum() / (terms > 0).sum().clamp(min=1)


def uniform_cross_entropy(logits: Tensor) -> Tensor:
    """Cross-entropy of logits (N, K) to the uniform distribution over K: ln K at least, where all K are as likely.

    PEPR-Net's Eq. 3 with its minus sign, without which minimising it has no bound.
    """
    return -F.log_softmax(logits, dim=1).mean()
