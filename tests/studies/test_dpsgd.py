"""DP-SGD as a rival: it learns less the less it may tell, and spends what it was given."""

from __future__ import annotations

import sys

import pytest
import torch

from studies.peprnet.rivals import DpSgdConfig, train_dpsgd
from veilkit.errors import ConfigError
from veilkit.networks.reid import ReidNetwork, ReidNetworkConfig

SMALL = ReidNetworkConfig(backbone="osnet-x0.25", size=(32, 16), feature="pooled")


def clouds(people: int = 4, shots: int = 40) -> tuple[ReidNetwork, torch.Tensor, torch.Tensor]:
    torch.manual_seed(0)
    network = ReidNetwork(SMALL).eval()
    labels = torch.arange(people).repeat_interleave(shots)
    centres = torch.randn(people, network.backbone.channels)
    return network, centres[labels] + 0.3 * torch.randn(len(labels), centres.shape[1]), labels


def test_more_privacy_means_less_is_learned_and_the_budget_is_kept() -> None:
    pytest.importorskip("opacus")
    network, features, labels = clouds()
    common = {"features": 8, "epochs": 8, "batch": 40}
    free, mild, strict = (
        train_dpsgd(network, features, labels, DpSgdConfig(epsilon=epsilon, delta=1e-4, **common))  # type: ignore[arg-type]
        for epsilon in (None, 50.0, 0.2)
    )
    assert (free.multiplier, free.epsilon) == (0.0, None)
    assert free.accuracy == 1.0
    assert mild.epsilon is not None
    assert strict.epsilon is not None
    assert mild.epsilon <= 50.0 * 1.01
    assert strict.epsilon <= 0.2 * 1.01
    assert strict.multiplier > mild.multiplier > 0
    assert strict.accuracy < mild.accuracy


def test_the_network_gives_the_heads_features() -> None:
    network, features, labels = clouds()
    trained = train_dpsgd(network, features, labels, DpSgdConfig(epsilon=None, delta=1e-4, features=8, epochs=1))
    images = torch.rand(3, 3, 32, 16)
    with torch.no_grad():
        projection = trained.network.projection
        assert isinstance(projection, torch.nn.Linear)
        torch.testing.assert_close(trained.network.embed(images), projection(network.embed(images)))
    assert trained.network.config.projection == 8


def test_without_opacus_it_says_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "opacus", None)
    with pytest.raises(ConfigError, match=r"veilkit\[dpsgd\]"):
        train_dpsgd(*clouds(), DpSgdConfig(epsilon=1.0, delta=1e-4, features=8, epochs=1))
    with pytest.raises(ConfigError, match="epsilon must be between"):
        DpSgdConfig(epsilon=-1.0, delta=1e-4)
