from __future__ import annotations

import itertools
import math

import numpy as np
import opendp.prelude as dp
import pytest
import torch
from scipy.stats import kstest

from veilkit.privacy import Laplace


@pytest.mark.parametrize("dimension", [1, 3, 128, 512])
@pytest.mark.parametrize("epsilon", [0.5, 16.0])
def test_opendp_proves_epsilon_for_the_widest_pair(dimension: int, epsilon: float) -> None:
    dp.enable_features("contrib")
    domain = dp.vector_domain(dp.atom_domain(T=float, nan=False), size=dimension)
    scale = Laplace(dimension=dimension, epsilon=epsilon).scale
    added = dp.m.make_laplace(domain, dp.l1_distance(T=float), scale=scale, k=-40)
    proved = added.map(2.0 * math.sqrt(dimension) * (1.0 - 1e-9))
    assert proved <= epsilon
    assert proved == pytest.approx(epsilon, rel=1e-8)


def test_no_pair_of_unit_vectors_is_wider_apart_in_l1_than_the_diagonal() -> None:
    vectors = np.random.default_rng(0).standard_normal((60, 5))
    vectors = np.concatenate(
        [vectors / np.linalg.norm(vectors, axis=1, keepdims=True), np.ones((1, 5)) / math.sqrt(5)]
    )
    widest = max(np.abs(one + other).sum() for one, other in itertools.product(vectors, vectors))
    assert widest == pytest.approx(2.0 * math.sqrt(5))


def test_the_noise_drawn_is_laplace_of_that_scale() -> None:
    mechanism = Laplace(dimension=2, epsilon=1.0)
    vectors = torch.tensor([[0.6, -0.8]], dtype=torch.float64).repeat(4000, 1)
    noise = (mechanism.release(vectors).double() - vectors).numpy() / mechanism.scale
    assert kstest(noise[:, 0], "laplace").pvalue > 1e-6
    assert kstest(noise[:, 1], "laplace").pvalue > 1e-6
