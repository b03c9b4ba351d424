from __future__ import annotations

import math
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch

import veilkit.privacy
from veilkit.errors import ConfigError, DataError, UnknownNameError
from veilkit.privacy import (
    MECHANISMS,
    AnalyticGaussian,
    DisguisePaper,
    Laplace,
    Mechanism,
    PeprPaper,
    PrivUnit,
    SeededNoise,
    audit_mechanism,
    make_mechanism,
    unit,
)

D = 3
SOUND = [
    AnalyticGaussian(dimension=D, epsilon=2.0, delta=1e-5),
    Laplace(dimension=D, epsilon=2.0),
    PrivUnit(dimension=D, epsilon=2.0),
]
PAPERS = [
    PeprPaper(dimension=D, epsilon=0.5, delta=0.01, sensitivity=1.5, spread=0.4),
    DisguisePaper(dimension=D, epsilon=2.0, sensitivity=3.0),
]
ALL = [pytest.param(mechanism, id=mechanism.name) for mechanism in SOUND + PAPERS]
WITH_PROOF = ALL[: len(SOUND)]


def some_unit_vectors(count: int) -> torch.Tensor:
    return unit(torch.randn(count, D, generator=torch.Generator().manual_seed(0)))


@pytest.mark.parametrize("mechanism", ALL)
def test_a_release_is_an_unbiased_float32_estimate_and_leaves_its_input_alone(mechanism: Mechanism) -> None:
    vectors = some_unit_vectors(1).repeat(40_000, 1)
    before = vectors.clone()
    released = mechanism.release(vectors, noise=SeededNoise(1, insecure=True))
    assert released.dtype == torch.float32
    assert released.shape == vectors.shape
    assert torch.equal(vectors, before)
    error = released.double().mean(0) - vectors[0].double()
    assert (error.abs() < 6 * released.double().std(0) / math.sqrt(len(released))).all()


@pytest.mark.parametrize("mechanism", ALL)
def test_noise_of_the_system_is_new_each_time_and_of_a_seed_the_same(mechanism: Mechanism) -> None:
    vectors = some_unit_vectors(3)
    assert not torch.equal(mechanism.release(vectors), mechanism.release(vectors))
    again = [mechanism.release(vectors, noise=SeededNoise(5, insecure=True)) for _ in range(2)]
    assert torch.equal(*again)


@pytest.mark.parametrize("mechanism", WITH_PROOF)
@pytest.mark.parametrize("norm", [0.0, 0.9, 1.001, 10.0])
def test_vectors_that_are_not_unit_are_refused_and_never_normalised_in_silence(
    mechanism: Mechanism, norm: float
) -> None:
    vectors = some_unit_vectors(4)
    vectors[2] *= norm
    with pytest.raises(DataError, match=r"expected unit vectors.*row 2.*veilkit\.privacy\.unit"):
        mechanism.release(vectors)


@pytest.mark.parametrize("mechanism", ALL)
@pytest.mark.parametrize(
    ("vectors", "message"),
    [
        (torch.ones(2, D + 1), f"made for vectors of {D}, but got vectors of {D + 1}"),
        (torch.ones(D), r"shape \(N, D\)"),
        (torch.ones(0, D), "neither of them 0"),
        (torch.ones(2, D, dtype=torch.int64), "floating tensor"),
        (np.ones((2, D)), "floating tensor"),
        (torch.full((2, D), math.nan), "NaN or infinity"),
        (torch.full((2, D), math.inf), "NaN or infinity"),
    ],
)
def test_what_is_no_batch_of_finite_vectors_is_refused(
    mechanism: Mechanism, vectors: torch.Tensor, message: str
) -> None:
    with pytest.raises(DataError, match=message):
        mechanism.release(vectors)


@pytest.mark.parametrize("mechanism", WITH_PROOF)
def test_no_sound_mechanism_is_refuted_by_the_auditor(mechanism: Mechanism) -> None:
    audit = audit_mechanism(mechanism, draws=1500)
    assert not audit.refuted
    assert audit.proved == audit.claimed == 2.0
    assert f"claimed 2, proved 2, lower bound {audit.lower_bound:.4g}" in str(audit)


def test_half_precision_vectors_count_as_unit() -> None:
    vectors = some_unit_vectors(16).to(torch.bfloat16)
    vectors = unit(vectors.float()).half().float()
    assert vectors.norm(dim=1).sub(1).abs().max() > 1e-6
    assert torch.isfinite(SOUND[0].release(unit(vectors))).all()


def test_unit_normalises_in_the_type_it_is_given_and_refuses_a_vector_of_zeros() -> None:
    features = torch.tensor([[3.0, 4.0], [0.0, -2.0]])
    assert torch.equal(unit(features), torch.tensor([[0.6, 0.8], [0.0, -1.0]]))
    assert unit(features.double()).dtype == torch.float64
    with pytest.raises(DataError, match="row 1"):
        unit(torch.tensor([[1.0, 0.0], [0.0, 0.0]]))


@pytest.mark.parametrize("epsilon", [0.0, -1.0, math.inf, math.nan, True, "1"])
@pytest.mark.parametrize("name", list(MECHANISMS))
def test_an_epsilon_that_is_none_is_refused(name: str, epsilon: float) -> None:
    with pytest.raises(ConfigError, match="epsilon must be a finite number above 0"):
        make_mechanism(name, dimension=4, epsilon=epsilon, delta=1e-6 if name == "gaussian" else 0.0)


@pytest.mark.parametrize("delta", [0.0, 1.0, -1e-6, math.nan, False])
def test_a_delta_that_is_none_is_refused(delta: float) -> None:
    with pytest.raises(ConfigError, match="delta must lie strictly between 0 and 1"):
        AnalyticGaussian(dimension=4, epsilon=1.0, delta=delta)


def test_privacy_parameters_are_keyword_only_and_have_no_default() -> None:
    with pytest.raises(TypeError, match="epsilon"):
        PrivUnit(dimension=4)  # type: ignore[call-arg]
    with pytest.raises(TypeError, match="delta"):
        AnalyticGaussian(dimension=4, epsilon=1.0)  # type: ignore[call-arg]
    with pytest.raises(TypeError, match="positional"):
        PrivUnit(4, 1.0)  # type: ignore[misc]


def test_a_pure_mechanism_takes_no_delta_and_an_unknown_one_is_answered_with_the_known() -> None:
    assert make_mechanism("gaussian", dimension=D, epsilon=2.0, delta=1e-5) == SOUND[0]
    with pytest.raises(ConfigError, match="laplace is a pure mechanism"):
        make_mechanism("laplace", dimension=4, epsilon=1.0, delta=1e-6)
    with pytest.raises(UnknownNameError, match="gaussian, laplace, privunit"):
        make_mechanism("gausian", dimension=4, epsilon=1.0, delta=1e-6)
    with pytest.raises(ConfigError, match="dimension must be a whole number of at least 2"):
        make_mechanism("privunit", dimension=1, epsilon=1.0, delta=0.0)


@pytest.mark.parametrize("mechanism", ALL)
def test_a_claim_says_what_is_proved(mechanism: Mechanism) -> None:
    guarantee = mechanism.guarantee()
    assert guarantee.epsilon_claimed == mechanism.epsilon
    proved = mechanism in SOUND
    assert guarantee.epsilon_proved == (mechanism.epsilon if proved else math.inf)
    assert ("no formal guarantee" in guarantee.text) != proved


ROOT = Path(__file__).resolve().parent.parent.parent


def test_the_example_of_the_page_runs(tmp_path: Path) -> None:
    code = re.search(r"<!-- example -->\n```python\n(.*?)```", (ROOT / "docs" / "privacy.md").read_text(), re.S)
    assert code
    done = subprocess.run([sys.executable, "-c", code[1]], cwd=tmp_path, capture_output=True, text=True, check=True)
    spent, refused, audit = done.stdout.splitlines()
    assert "epsilon=16.0" in spent
    assert "from epsilon 16 to 24" in refused
    assert "privunit: epsilon claimed 8, proved 8, lower bound" in audit


def test_everything_exported_is_there_once() -> None:
    assert len(set(veilkit.privacy.__all__)) == len(veilkit.privacy.__all__)
    assert all(hasattr(veilkit.privacy, name) for name in veilkit.privacy.__all__)
