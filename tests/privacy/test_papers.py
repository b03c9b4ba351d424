from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from scipy.spatial.distance import pdist

from veilkit.errors import ConfigError, DataError
from veilkit.privacy import DisguisePaper, PeprPaper, SeededNoise, audit_mechanism


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
