from __future__ import annotations

import math

import dp_accounting
import numpy as np
import pytest
import torch
from dp_accounting.pld import PLDAccountant
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.spatial.distance import pdist

from veilkit.errors import ConfigError, DataError
from veilkit.privacy import (
    AnalyticGaussian,
    Budget,
    Cost,
    DisguisePaper,
    Laplace,
    PeprPaper,
    SeededNoise,
    affordable,
    audit_mechanism,
    composed_epsilon,
)

GAUSSIAN = AnalyticGaussian(dimension=8, epsilon=1.0, delta=1e-6).cost
OTHER = AnalyticGaussian(dimension=8, epsilon=0.5, delta=1e-7).cost
PURE = Laplace(dimension=8, epsilon=0.3).cost


def randomised_response(epsilon: float) -> dp_accounting.DpEvent:
    """The pure mechanism that tells most: of two answers the true one with odds of exp(epsilon)."""
    return dp_accounting.RandomizedResponseDpEvent(noise_parameter=2.0 / (1.0 + math.exp(epsilon)), num_buckets=2)


@pytest.mark.parametrize("count", [1, 2, 7, 30])
def test_gaussian_releases_compose_as_in_dp_accounting(count: int) -> None:
    assert GAUSSIAN.multiplier is not None
    accountant = PLDAccountant()
    accountant.compose(dp_accounting.GaussianDpEvent(GAUSSIAN.multiplier), count)
    ours = composed_epsilon({GAUSSIAN: count}, delta=1e-5)
    assert ours == pytest.approx(accountant.get_epsilon(1e-5), rel=1e-4)
    assert ours < count * GAUSSIAN.epsilon


@pytest.mark.parametrize("count", [2, 20])
def test_pure_releases_compose_as_in_dp_accounting(count: int) -> None:
    accountant = PLDAccountant(dp_accounting.NeighboringRelation.REPLACE_ONE)
    for _ in range(count):
        accountant.compose(randomised_response(0.3))
    ours = composed_epsilon({PURE: count}, delta=1e-5)
    assert ours == pytest.approx(accountant.get_epsilon(1e-5), rel=1e-4)
    assert ours < count * 0.3


def test_mixtures_compose_as_in_dp_accounting() -> None:
    accountant = PLDAccountant(dp_accounting.NeighboringRelation.REPLACE_ONE)
    for cost in (GAUSSIAN, OTHER, OTHER):
        assert cost.multiplier is not None
        # dp-accounting counts noise for adding one record; replacing is twice as far.
        accountant.compose(dp_accounting.GaussianDpEvent(2.0 * cost.multiplier))
    for _ in range(4):
        accountant.compose(randomised_response(0.3))
    ours = composed_epsilon({GAUSSIAN: 1, OTHER: 2, PURE: 4}, delta=1e-5)
    assert ours == pytest.approx(accountant.get_epsilon(1e-5), rel=1e-3)


def test_one_release_costs_what_it_claims() -> None:
    assert composed_epsilon({}, delta=0.0) == 0.0
    assert composed_epsilon({PURE: 1}, delta=0.0) == 0.3
    assert composed_epsilon({GAUSSIAN: 1}, delta=1e-6) == pytest.approx(1.0, rel=1e-9)
    assert composed_epsilon({GAUSSIAN: 1}, delta=0.0) == math.inf
    assert composed_epsilon({GAUSSIAN: 1}, delta=1e-9) > 1.0


def test_without_delta_pure_costs_add_up() -> None:
    assert composed_epsilon({PURE: 50, Cost(2.0): 1}, delta=0.0) == pytest.approx(17.0)


def test_a_release_without_a_proof_makes_all_of_it_infinite() -> None:
    assert composed_epsilon({PURE: 1, Cost(math.inf): 1}, delta=1e-6) == math.inf


@settings(max_examples=10, deadline=None)
@given(
    costs=st.dictionaries(st.sampled_from([GAUSSIAN, OTHER, PURE, Cost(8.0)]), st.integers(0, 6), min_size=1),
    more=st.sampled_from([GAUSSIAN, OTHER, PURE]),
)
def test_another_release_never_costs_less_nor_more_than_its_sum(costs: dict[Cost, int], more: Cost) -> None:
    before = composed_epsilon(costs, delta=1e-4)
    after = composed_epsilon({**costs, more: costs.get(more, 0) + 1}, delta=1e-4)
    assert after >= before - 1e-6
    assert after <= sum(cost.epsilon * count for cost, count in costs.items()) + more.epsilon + 1e-9


def test_how_many_releases_a_budget_allows() -> None:
    assert affordable(PURE, Budget(epsilon=3.0, delta=0.0)) == 10
    assert affordable(PURE, Budget(epsilon=0.2, delta=0.0)) == 0
    assert affordable(PURE, Budget(epsilon=math.inf, delta=0.0)) == math.inf
    budget = Budget(epsilon=4.0, delta=1e-5)
    most = affordable(GAUSSIAN, budget)
    assert isinstance(most, int)
    assert composed_epsilon({GAUSSIAN: most}, delta=1e-5) <= 4.0 < composed_epsilon({GAUSSIAN: most + 1}, delta=1e-5)
    assert most > 4


@pytest.mark.parametrize(("epsilon", "delta"), [(0.0, 0.0), (math.nan, 0.0), (1.0, 1.0), (1.0, -1e-9), (1.0, False)])
def test_a_budget_that_is_none_is_refused(epsilon: float, delta: float) -> None:
    with pytest.raises(ConfigError):
        Budget(epsilon=epsilon, delta=delta)


def test_negative_releases_are_refused() -> None:
    with pytest.raises(ConfigError, match="negative"):
        composed_epsilon({PURE: -1}, delta=0.0)


def features(scale: float = 1.0) -> torch.Tensor:
    return scale * torch.randn(40, 4, generator=torch.Generator().manual_seed(3))


def test_pepr_measures_the_sensitivity_on_the_gallery_and_keeps_sigma_near_its_spread() -> None:
    gallery = features()
    found = PeprPaper.measured(gallery, epsilon=1.0, delta=0.01)
    assert found.sensitivity == pytest.approx(pdist(gallery.double().numpy()).max())
    assert found.spread == pytest.approx(float(np.std(gallery.double().numpy(), ddof=1)))
    formula = found.sensitivity * math.sqrt(2 * math.log(1.25 / 0.01))
    assert formula > found.spread + 5.0
    assert found.sigma == pytest.approx(found.spread + 5.0)
    assert PeprPaper.measured(gallery, epsilon=100.0, delta=0.01).sigma == pytest.approx(formula / 100.0)
    wide = PeprPaper(dimension=4, epsilon=1.0, delta=0.01, sensitivity=1.0, spread=20.0)
    assert wide.sigma == 15.0


def test_disguise_measures_the_sensitivity_in_l1() -> None:
    found = DisguisePaper.measured(features(), epsilon=2.0)
    assert found.sensitivity == pytest.approx(pdist(features().double().numpy(), "cityblock").max())
    assert found.scale == pytest.approx(found.sensitivity / 2.0)


def test_the_printed_epsilon_of_disguise_is_a_product_where_a_quotient_is_meant() -> None:
    found = DisguisePaper.from_scale(dimension=512, sensitivity=33.92, scale=2.0)
    assert found.scale == 2.0
    assert found.epsilon == pytest.approx(67.84 / 4)


def test_vectors_of_any_norm_are_taken_as_the_papers_take_them() -> None:
    assert PeprPaper.measured(features(10.0), epsilon=1.0, delta=0.01).release(features(10.0)).shape == (40, 4)


def test_the_auditor_refutes_what_was_measured_on_data_that_lay_close_together() -> None:
    """Features that point the same way are close together; somebody who looks otherwise gets too little noise."""
    alike = torch.nn.functional.normalize(torch.ones(40, 4) + features(0.1))
    noise = SeededNoise(0, insecure=True)
    for found in (PeprPaper.measured(alike, epsilon=1.0, delta=1e-3), DisguisePaper.measured(alike, epsilon=1.0)):
        audit = audit_mechanism(found, draws=5000, noise=noise)
        assert audit.refuted
        assert audit.proved == math.inf
        assert "proved infinite (no formal guarantee)" in str(audit)
        assert "REFUTED" in str(audit)


def test_a_sensitivity_needs_something_to_be_measured_on() -> None:
    with pytest.raises(DataError, match="all the same"):
        DisguisePaper.measured(torch.ones(3, 4), epsilon=1.0)
    with pytest.raises(ConfigError, match="sensitivity must be a finite number above 0"):
        DisguisePaper(dimension=4, epsilon=1.0, sensitivity=0.0)
    with pytest.raises(ConfigError, match="scale must be"):
        DisguisePaper.from_scale(dimension=4, sensitivity=1.0, scale=-1.0)
