"""Small classifiers for tests: not trained, since what is tested does not depend on how much they know."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import torch

from veilkit.methods.fro.assembly import AssemblyConfig
from veilkit.methods.fro.method import Fro, FroConfig
from veilkit.methods.fro.pool import Pool
from veilkit.networks.reid import ReidNetwork, ReidNetworkConfig
from veilkit.training.reid_config import PLAIN

TINY = FroConfig(
    group=4,
    assembly=AssemblyConfig(steps=3),
    pool=replace(PLAIN, backbone="osnet-x0.25", size=(32, 16), epochs=2, identities=3, images=2),
)


def tiny_pool(people: Sequence[str], backbone: str = "osnet-x0.25") -> Pool:
    """A network of random weights whose running statistics are those of some noise."""
    with torch.random.fork_rng():
        torch.manual_seed(0)
        network = ReidNetwork(ReidNetworkConfig(backbone=backbone, size=(32, 16), identities=len(people)))
        network.train()
        with torch.no_grad():
            for head in network.heads:
                head.classifier.weight.normal_(std=0.1)
            network(torch.rand(16, 3, 32, 16))
    return Pool.of(network.eval(), people, [2] * len(people))


def tiny_fro(people: Sequence[str]) -> Fro:
    """FRO with such a pool, in three steps at 32 x 16."""
    return Fro(TINY, tiny_pool(people))
