"""A home of its own for each test, and small experts."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from veilkit.networks.reid import ReidNetwork, ReidNetworkConfig, save_reid


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "home"
    monkeypatch.setenv("VEILKIT_HOME", str(folder))
    return folder


def settled_network(config: ReidNetworkConfig, seed: int = 0) -> ReidNetwork:
    """A network with random weights whose norms know their inputs, as after training: its features see the image."""
    torch.manual_seed(seed)
    network = ReidNetwork(config)
    for module in network.modules():
        if isinstance(module, torch.nn.BatchNorm1d | torch.nn.BatchNorm2d):
            torch.nn.init.uniform_(module.weight, 0.5, 1.5)
            torch.nn.init.normal_(module.bias, std=0.1)
            module.momentum = 1.0
    with torch.no_grad():
        network.train().embed(torch.rand(8, 3, 5, 3))
    return network.eval()


@pytest.fixture(scope="session")
def reid_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("reid") / "walkers.safetensors"
    save_reid(path, settled_network(ReidNetworkConfig("osnet-x0.25", (64, 32), bands=(1, 2), reduced=16)))
    return path
