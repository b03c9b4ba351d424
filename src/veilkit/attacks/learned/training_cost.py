"""What an update of an attacker who learns costs, so that a time can be turned into a number of updates."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import torch
from torch import Tensor

from veilkit.attacks.learned.recovery import RecoveryConfig
from veilkit.attacks.target import Budget
from veilkit.networks.unet import UNet, UNetConfig

_BACKWARD = 3  # forward passes that a forward and a backward pass cost together


def one_update(images: Tensor) -> Callable[[], None]:
    """One update of the network that most attackers who learn train, on pictures (N, 3, H, W) of the release."""
    config = RecoveryConfig()
    network = UNet(UNetConfig(config.width, config.depth))
    optimiser = torch.optim.Adam(network.parameters())
    batch = images[np.resize(np.arange(len(images)), Budget().batch)]

    def update() -> None:
        optimiser.zero_grad()
        (network(batch, None) - batch).abs().mean().backward()
        optimiser.step()

    return update


def recogniser_update_seconds(embedding: float) -> float:
    """About what an update through a whole recogniser takes that embeds a picture in so many seconds."""
    return _BACKWARD * Budget().batch * embedding
