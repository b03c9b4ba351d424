"""A Re-ID network that learns: its first weights, its centres and its optimizers."""

from __future__ import annotations

from pathlib import Path
from typing import cast

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from veilkit.checkpoint import load_checkpoint, load_weights
from veilkit.errors import CheckpointError, ConfigError
from veilkit.networks.backbones import BACKBONE_KIND
from veilkit.networks.losses import Centres
from veilkit.networks.reid import REID_KIND, ReidNetwork, ReidNetworkConfig, channels_last
from veilkit.rng import Randomness
from veilkit.training.fitting import seeded
from veilkit.training.loop import follow
from veilkit.training.reid_config import ReidConfig
from veilkit.training.state import Parts


class ReidLearner:
    """A Re-ID network with its centres and optimizers; who calls computes the loss and lets it step.

    init: weights that the backbone starts from; `started_from` is their SHA-256.
    """

    def __init__(self, config: ReidConfig, people: int, rng: Randomness, init: Path | None = None) -> None:
        check_start(config.frozen, init)
        self.config = config

        def make() -> nn.ModuleList:  # torch's layers start from its global generator, in this order
            network = ReidNetwork(network_config(config, people))
            return nn.ModuleList([network, Centres(people, config.reduced or network.backbone.channels)])

        self.network, self.centres = cast(tuple[ReidNetwork, Centres], tuple(seeded(make, rng)))
        self.started_from = None if init is None else start_from(self.network, init, config.backbone)
        channels_last(self.network)
        self._frozen = freeze(self.network, config.frozen)
        # In two groups, each with the `scale` of its rate: the backbone and the heads.
        groups = [
            {"params": _learning(cast(nn.Module, self.network.backbone)), "scale": 1.0},
            {"params": _learning(self.network.heads), "scale": config.head_rate},
        ]
        self._adam = torch.optim.Adam(groups, lr=config.rate, weight_decay=config.weight_decay)
        self._sgd = torch.optim.SGD(self.centres.parameters(), config.centre_rate)

    @property
    def parts(self) -> Parts:
        """All that the next step depends on."""
        return {"network": self.network, "centres": self.centres, "adam": self._adam}

    def train_mode(self) -> None:
        """Training mode, but for the frozen parts."""
        self.network.train()
        for part in self._frozen:
            part.eval()

    def zero_grad(self) -> None:
        """Forget gradients."""
        self._adam.zero_grad(set_to_none=True)
        self._sgd.zero_grad(set_to_none=True)

    def step(self, factor: float) -> None:
        """Follow the gradients, at `factor` times the recipe's rate; the centres follow at a rate of their own."""
        follow(self._adam, self.config.rate * factor)
        if self.config.centre:
            for parameter in self.centres.parameters():
                if parameter.grad is not None:
                    parameter.grad /= self.config.centre  # whatever the loss's weight
            self._sgd.step()


def label_loss(logits: Tensor, labels: Tensor, config: ReidConfig) -> Tensor:
    """Cross-entropy of logits (N, people) to labels (N,), smoothed and with a margin where the recipe has them."""
    handicap = config.cosine * config.margin * F.one_hot(labels, logits.shape[1])
    return F.cross_entropy(logits - handicap, labels, label_smoothing=config.smoothing)


def network_config(config: ReidConfig, identities: int) -> ReidNetworkConfig:
    """The network that a recipe asks for, with a classifier of so many people."""
    return ReidNetworkConfig(
        backbone=config.backbone, size=config.size, last_stride=config.last_stride, bands=config.bands,
        reduced=config.reduced, identities=identities, cosine=config.cosine, feature=config.feature,
    )  # fmt: skip


def check_start(frozen: int, init: Path | None) -> None:
    """Raise where parts of a backbone would stay as chance made them."""
    if frozen and init is None:
        raise ConfigError(
            f"frozen={frozen} keeps the first parts of the backbone as they start, which needs weights to start "
            "from; give some (--init), or set frozen to 0"
        )


def start_from(network: ReidNetwork, init: Path, backbone: str) -> str:
    """Take the backbone's weights from a backbone file, or from a whole Re-ID network that was trained before."""
    start = load_checkpoint(init, (BACKBONE_KIND, REID_KIND))
    if start.config.get("backbone") != backbone:
        raise CheckpointError(
            f"{init.name}: expected weights of {backbone!r}, but got those of {start.config.get('backbone')!r}"
        )
    tensors = start.tensors
    if start.kind == REID_KIND:
        tensors = {n.removeprefix("backbone."): t for n, t in tensors.items() if n.startswith("backbone.")}
    load_weights(cast(nn.Module, network.backbone), tensors, init.name)
    return start.sha256


def freeze(network: ReidNetwork, count: int) -> list[nn.Module]:
    """Stop the learning of the stem and the first `count` - 1 blocks; they are returned."""
    frozen = network.backbone.parts()[:count]
    for part in frozen:
        part.requires_grad_(False)
    return frozen


def _learning(module: nn.Module) -> list[Tensor]:
    return [parameter for parameter in module.parameters() if parameter.requires_grad]
