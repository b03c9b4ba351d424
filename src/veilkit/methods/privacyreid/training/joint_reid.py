"""A recogniser trained on two kinds of pictures of the same people at once (PrivacyReID, Eq. 7)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import torch
import torch.nn.functional as F
from torch import Tensor

from veilkit.checkpoint import load_weights
from veilkit.errors import ConfigError
from veilkit.networks.losses import Centres, weighted_regularised_triplet
from veilkit.networks.reid import ReidNetwork, channels_last
from veilkit.rng import Randomness
from veilkit.training.reid_config import ReidConfig
from veilkit.training.reid_run import freeze, network_config, reid_adam, start_from
from veilkit.training.state import of_prefix, pack_optimizer, unpack_optimizer, with_prefix


class JointReid:
    """A Re-ID network with its centres and optimizers; who calls computes the loss and lets it step.

    init: weights that the backbone starts from; `started_from` is their SHA-256.
    """

    def __init__(self, config: ReidConfig, people: int, rng: Randomness, init: Path | None = None) -> None:
        if config.frozen and init is None:
            raise ConfigError(f"frozen={config.frozen} needs weights to start from; give some, or set frozen to 0")
        self._config = config
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(rng.integer(0, 2**63))
            self.network = ReidNetwork(network_config(config, people))
            self._centres = Centres(people, config.reduced or self.network.backbone.channels)
        self.started_from = None if init is None else start_from(self.network, init, config.backbone)
        channels_last(self.network)
        self._frozen = freeze(self.network, config.frozen)
        self._adam = reid_adam(self.network, config)
        self._sgd = torch.optim.SGD(self._centres.parameters(), config.centre_rate)

    def loss(self, kinds: Sequence[Tensor], labels: Tensor) -> Tensor:
        """The sum of AGW's losses over some kinds of the same pictures, each (N, 3, H, W) in [0, 1] of `labels` (N,).

        All go through the network together, so that batch norm sees in training the mixture that it is tested on.
        """
        config = self._config
        self.network.train()
        for part in self._frozen:
            part.eval()
        output = self.network(torch.cat(list(kinds)))
        handicap = config.cosine * config.margin * F.one_hot(labels, output.logits[0].shape[1])
        losses = []
        for kind in range(len(kinds)):
            own = slice(kind * len(labels), (kind + 1) * len(labels))
            losses += [
                F.cross_entropy(logits[own] - handicap, labels, label_smoothing=config.smoothing) / len(output.logits)
                for logits in output.logits
            ]
            pooled = output.pooled[0][own]
            if config.triplet:
                losses.append(config.triplet * weighted_regularised_triplet(pooled, labels))
            if config.centre:
                losses.append(config.centre * self._centres(pooled, labels))
        return torch.stack(losses).sum()

    def zero_grad(self) -> None:
        """Forget gradients."""
        self._adam.zero_grad(set_to_none=True)
        self._sgd.zero_grad(set_to_none=True)

    def step(self, factor: float) -> None:
        """Follow the gradients, at `factor` times the recipe's rate; the centres follow at a rate of their own."""
        for group in self._adam.param_groups:
            group["lr"] = self._config.rate * factor * group["scale"]
        self._adam.step()
        if self._config.centre:
            for parameter in self._centres.parameters():
                if parameter.grad is not None:
                    parameter.grad /= self._config.centre
            self._sgd.step()

    def tensors(self) -> dict[str, Tensor]:
        """All that the next step depends on."""
        return {
            **with_prefix("network", self.network.state_dict()),
            **with_prefix("centres", self._centres.state_dict()),
            **with_prefix("adam", pack_optimizer(self._adam)),
        }

    def restore(self, tensors: Mapping[str, Tensor], source: str) -> None:
        """Go on from what `tensors` gave; `source` names the file in messages."""
        load_weights(self.network, of_prefix("network", tensors), source)
        load_weights(self._centres, of_prefix("centres", tensors), source)
        unpack_optimizer(self._adam, of_prefix("adam", tensors))
