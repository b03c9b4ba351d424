"""Losses and pooling against direct formulas."""

import math

import pytest
import torch

from veilkit.networks.losses import (
    Centres,
    hinge_triplet,
    pairwise_distances,
    uniform_cross_entropy,
    weighted_regularised_triplet,
)
from veilkit.networks.reid import generalised_mean

GENERATOR = torch.Generator().manual_seed(3)
FEATURES = torch.randn(12, 5, generator=GENERATOR, dtype=torch.float64)
LABELS = torch.tensor([0, 0, 0, 1, 1, 1, 2, 2, 2, 3, 3, 3])


def direct_triplet(features, labels):
    """The paper's formula, pair by pair."""
    total = 0.0
    for i, anchor in enumerate(features):
        distance = [math.dist(anchor.tolist(), other.tolist()) for other in features]
        positive = [distance[j] for j in range(len(labels)) if labels[j] == labels[i] and j != i]
        negative = [distance[j] for j in range(len(labels)) if labels[j] != labels[i]]
        pull = sum(math.exp(d) * d for d in positive) / sum(math.exp(d) for d in positive)
        push = sum(math.exp(-d) * d for d in negative) / sum(math.exp(-d) for d in negative)
        total += math.log(1 + math.exp(pull - push))
    return total / len(features)


def test_triplet_is_the_papers_formula():
    assert weighted_regularised_triplet(FEATURES, LABELS).item() == pytest.approx(
        direct_triplet(FEATURES, LABELS.tolist()), rel=1e-9
    )


def test_triplet_falls_as_people_come_apart():
    centres = torch.randn(4, 5, generator=GENERATOR, dtype=torch.float64)[LABELS]
    near = weighted_regularised_triplet(FEATURES + centres, LABELS)
    far = weighted_regularised_triplet(FEATURES + 20 * centres, LABELS)
    assert far < near


def test_gradient_is_finite_for_equal_features():
    features = torch.ones(4, 3, requires_grad=True)
    weighted_regularised_triplet(features, torch.tensor([0, 0, 1, 1])).backward()
    assert features.grad.isfinite().all()


def test_distances_are_euclidean():
    assert torch.allclose(pairwise_distances(FEATURES).fill_diagonal_(0), torch.cdist(FEATURES, FEATURES), atol=1e-6)


def test_centre_loss_is_zero_at_the_centres_and_grows_with_the_square():
    centres = Centres(4, 5).double()
    own = centres.centres.detach()[LABELS]
    assert centres(own, LABELS).item() == 0
    assert centres(own + 2, LABELS).item() == pytest.approx(4 * 5)


def test_generalised_mean_runs_from_mean_to_maximum():
    maps = torch.rand(3, 4, 5, 6, generator=GENERATOR, dtype=torch.float64) + 0.1
    assert torch.allclose(generalised_mean(maps, torch.tensor(1.0)), maps.mean((2, 3)))
    assert torch.allclose(generalised_mean(maps, torch.tensor(500.0)), maps.amax((2, 3)), rtol=0.01)
    cubic = generalised_mean(maps, torch.tensor(3.0))
    assert (cubic > maps.mean((2, 3))).all()
    assert (cubic < maps.amax((2, 3))).all()


def direct_hinge(features, labels, margin, mining):
    """Eq. 1 of PEPR-Net, triplet by triplet."""
    apart = [[math.dist(a.tolist(), b.tolist()) ** 2 for b in features] for a in features]
    terms = []
    for i in range(len(labels)):
        same = [apart[i][j] for j in range(len(labels)) if labels[j] == labels[i] and j != i]
        other = [apart[i][j] for j in range(len(labels)) if labels[j] != labels[i]]
        if mining == "hard":
            terms.append(max(0.0, max(same) - min(other) + margin))
        else:
            terms += [term for p in same for n in other if (term := p - n + margin) > 0]
    return sum(terms) / len(terms)


@pytest.mark.parametrize("mining", ["all", "hard"])
def test_hinge_triplet_is_the_papers_formula(mining):
    found = hinge_triplet(FEATURES, LABELS, margin=0.3, mining=mining).item()
    assert found == pytest.approx(direct_hinge(FEATURES, LABELS.tolist(), 0.3, mining), rel=1e-9)


@pytest.mark.parametrize("mining", ["all", "hard"])
def test_hinge_triplet_is_zero_where_people_are_far_apart(mining):
    far = (100.0 * torch.eye(5, dtype=torch.float64)[LABELS]).requires_grad_()
    loss = hinge_triplet(far, LABELS, margin=0.3, mining=mining)
    loss.backward()
    assert loss.item() == 0
    assert far.grad.isfinite().all()


def test_uniform_cross_entropy_is_least_where_all_are_as_likely():
    logits = torch.randn(6, 7, generator=GENERATOR, dtype=torch.float64)
    least = uniform_cross_entropy(torch.full_like(logits, 3.0)).item()
    assert least == pytest.approx(math.log(7))
    assert uniform_cross_entropy(logits).item() > least
    by_hand = -sum(math.log(p) for row in logits.softmax(1).tolist() for p in row) / (6 * 7)
    assert uniform_cross_entropy(logits).item() == pytest.approx(by_hand)
