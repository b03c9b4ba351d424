"""Identity transforms against plain formulas, scipy's Laplace distribution and torch's own divergences."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from scipy import stats
from torch import nn
from torch.distributions import Normal, kl_divergence

from veilkit.errors import ConfigError
from veilkit.methods.disguise.identity_transforms import (
    Ensemble,
    MlpTransform,
    TransformConfig,
    Ved,
    deid_loss,
    geometry_loss,
    kld_loss,
    make_transform,
    standard_laplace,
    transformed,
    unnatural_loss,
)
from veilkit.rng import Randomness

SMALL = TransformConfig(dim=6, mlp=(9, 8), ved=(7, 7), latent=5)


def unit(count: int, dim: int, seed: int = 0) -> torch.Tensor:
    return F.normalize(torch.randn(count, dim, generator=torch.Generator().manual_seed(seed)))


def widths(module: nn.Module) -> list[tuple[int, int]]:
    return [(layer.in_features, layer.out_features) for layer in module.modules() if isinstance(layer, nn.Linear)]


def test_the_papers_sizes() -> None:
    """The supplement: 512-2048-1024-512; 512-1024-1024, two of 512, 512-1024-1024-512; 1024-1024-512."""
    assert widths(MlpTransform(TransformConfig())) == [(512, 2048), (2048, 1024), (1024, 512)]
    ved = Ved(TransformConfig())
    assert widths(ved.encoder) == [(512, 1024), (1024, 1024)]
    assert widths(ved.mean) == widths(ved.log_variance) == [(1024, 512)]
    assert widths(ved.decoder) == [(512, 1024), (1024, 1024), (1024, 512)]
    assert widths(Ensemble([512, 512], 512)) == [(1024, 1024), (1024, 512)]


@pytest.mark.parametrize("kind", ["opp", "mlp", "ved", "noise"])
def test_answers_are_unit_vectors_that_follow_their_noise(kind: str) -> None:
    config = TransformConfig(kind=kind, dim=6, mlp=(9, 8), ved=(7, 7), latent=5)  # type: ignore[arg-type]
    transform, vectors = make_transform(config), unit(4, 6)
    plain = transformed(transform, vectors).vectors
    torch.testing.assert_close(plain.norm(dim=1), torch.ones(4))
    assert torch.equal(plain, transformed(transform, vectors).vectors)
    assert config.noise_length == {"opp": 0, "mlp": 6, "ved": 5, "noise": 6}[kind]
    if kind == "opp":
        assert torch.equal(plain, -vectors)
    else:
        noisy = transformed(transform, vectors, torch.ones(4, config.noise_length)).vectors
        assert not torch.allclose(plain, noisy, atol=1e-4)


def test_the_mlp_and_the_ved_against_their_formulas() -> None:
    mlp, ved, vectors, noise = MlpTransform(SMALL), Ved(SMALL), unit(3, 6), torch.randn(3, 6)
    a, b, c = (layer for layer in mlp.layers if isinstance(layer, nn.Linear))

    def leaky(values: torch.Tensor) -> torch.Tensor:
        return torch.where(values > 0, values, 0.2 * values)

    raw = torch.tanh(c(leaky(b(leaky(a(vectors + noise))))))
    torch.testing.assert_close(mlp(vectors, noise).vectors, raw / raw.norm(dim=1, keepdim=True))
    found, drawn = ved(vectors, noise[:, :5]), noise[:, :5]
    torch.testing.assert_close(
        found.vectors,
        F.normalize(torch.tanh(ved.decoder(found.mean + found.log_variance.exp().sqrt() * drawn))),
    )


def test_laplace_values_against_scipy() -> None:
    quantiles = torch.linspace(0.001, 0.999, 999)
    expected = torch.from_numpy(stats.laplace.ppf(quantiles.double().numpy())).float()
    torch.testing.assert_close(standard_laplace(quantiles), expected, rtol=2e-4, atol=1e-5)
    drawn = 2.5 * standard_laplace(Randomness.from_seed(1).uniform(20_000)).double().numpy()
    assert stats.kstest(drawn, stats.laplace(scale=2.5).cdf).pvalue > 0.01


def test_the_divergence_against_torchs_own() -> None:
    mean, log_variance = torch.randn(7, 5), torch.randn(7, 5)
    posterior, prior = Normal(mean, (0.5 * log_variance).exp()), Normal(0.0, 1.0)
    torch.testing.assert_close(kld_loss(mean, log_variance), kl_divergence(posterior, prior).sum(1).mean())
    assert kld_loss(torch.zeros(2, 5), torch.zeros(2, 5)) == 0


def test_de_identification_is_least_for_opposites_and_moves_the_transform() -> None:
    vectors = unit(5, 6)
    assert deid_loss(vectors, -vectors).item() == pytest.approx(0, abs=1e-6)
    assert deid_loss(vectors, 3 * vectors).item() == pytest.approx(2, abs=1e-6)
    transform = MlpTransform(SMALL)
    adam = torch.optim.Adam(transform.parameters(), 1e-2)
    before = deid_loss(vectors, transform(vectors).vectors).item()
    for _ in range(60):
        adam.zero_grad()
        deid_loss(vectors, transform(vectors).vectors).backward()
        adam.step()
    assert deid_loss(vectors, transform(vectors).vectors).item() < 0.5 * before


def test_unnatural_against_a_plain_formula_and_what_it_tells_apart() -> None:
    generator = torch.Generator().manual_seed(0)
    people = F.normalize(torch.randn(400, 6, generator=generator) + torch.tensor([2.0, 0, 0, 0, 0, 0]))
    one, other, opposite = people[:200], people[200:], -people[:200]

    def kernel(x: torch.Tensor, y: torch.Tensor) -> float:
        return float(np.mean([math.exp(-float((x - y).square().sum()) / (2 * w)) for w in (0.1, 0.25, 0.5, 1.0)]))

    x, y = one[:4], other[:3]
    within = [np.mean([kernel(a, b) for a, b in itertools.permutations(each, 2)]) for each in (x, y)]
    by_hand = sum(within) - 2 * np.mean([kernel(a, b) for a in x for b in y])
    assert float(unnatural_loss(3 * x, y)) == pytest.approx(by_hand, abs=1e-6)
    constant = other[:1].expand(200, -1)
    assert abs(float(unnatural_loss(one, other))) < 0.01
    assert float(unnatural_loss(opposite, other)) > 0.3
    assert float(unnatural_loss(constant, other)) > 0.3


def test_an_ensemble_learns_the_experts_angles_and_does_not_collapse() -> None:
    torch.manual_seed(0)
    experts = [unit(24, 6), 5 * unit(24, 4, seed=1)]
    alone = geometry_loss(unit(24, 6), [unit(24, 6)])
    assert alone.item() == pytest.approx(0, abs=1e-6)
    ensemble = Ensemble([6, 4], 8, hidden=32)
    constant = geometry_loss(torch.ones(24, 8), experts).item()
    adam = torch.optim.Adam(ensemble.parameters(), 1e-2)
    for _ in range(150):
        adam.zero_grad()
        loss = geometry_loss(ensemble(experts), experts)
        loss.backward()
        adam.step()
    assert loss.item() < 0.1 * constant
    torch.testing.assert_close(ensemble(experts).norm(dim=1), torch.ones(24))
    torch.testing.assert_close(ensemble(experts), ensemble([7 * experts[0], experts[1]]))  # lengths do not matter


def test_bad_configurations_are_told() -> None:
    with pytest.raises(ConfigError, match="opp, mlp, ved or noise, but got 'vae'"):
        TransformConfig(kind="vae")  # type: ignore[arg-type]
    with pytest.raises(ConfigError, match="mlp must be 1 to 16 sizes"):
        TransformConfig(mlp=())
    with pytest.raises(ConfigError, match="noise must be between"):
        TransformConfig(noise=-1.0)
