"""Re-ID trained with DP-SGD (Abadi et al., CCS 2016), by opacus: the rival that protects the training people.

Only a linear head learns, on features of a backbone that stays as it was before it met anybody (ImageNet's). DP-SGD
needs each picture's gradient by itself, which batch norm and the triplet loss do not have: so the head learns people
by cross-entropy, and its features are taken before its last layer.
"""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from veilkit.configs import check_range
from veilkit.errors import ConfigError
from veilkit.networks.reid import ReidNetwork
from veilkit.rng import Randomness
from veilkit.training.fitting import seeded

_MISSING = "DP-SGD needs opacus: pip install 'veilkit[dpsgd]'"


@dataclass(frozen=True, slots=True)
class DpSgdConfig:
    """epsilon, delta: of the whole training, for each picture; epsilon None trains without noise or clipping.

    features: length of a feature. clip: L2 norm that a picture's gradient is cut to. batch: expected pictures of an
    update, which are drawn independently (Poisson). rate, momentum: SGD's.
    """

    epsilon: float | None
    delta: float
    features: int = 128
    clip: float = 1.0
    epochs: int = 30
    batch: int = 512
    rate: float = 0.5
    momentum: float = 0.9
    seed: int = 0

    def __post_init__(self) -> None:
        if self.epsilon is not None:
            check_range("epsilon", self.epsilon, 1e-3, 1e6)
        check_range("delta", self.delta, 1e-300, 0.5)
        check_range("epochs", self.epochs, 1, 100_000)
        check_range("batch", self.batch, 2, 10**9)


@dataclass(frozen=True, slots=True, eq=False)
class DpSgdTrained:
    """network: embeds. multiplier: of the noise, in units of `clip`. epsilon: spent, by opacus's accountant.

    accuracy: of the head on the pictures that it learned from.
    """

    network: ReidNetwork
    multiplier: float
    epsilon: float | None
    accuracy: float


def train_dpsgd(backbone: ReidNetwork, features: Tensor, labels: Tensor, config: DpSgdConfig) -> DpSgdTrained:
    """A linear head on features (N, C), which `backbone` gave, of people `labels` (N,), counted from 0.

    The noise is torch's, from the seed, so that a study can be repeated: for a release it would have to be secure.
    """
    scale = 1.0 / float(features.norm(dim=1).mean())  # one number; gradients are clipped whatever it is
    rng = Randomness.from_seed(config.seed).child("dpsgd")
    people = int(labels.max()) + 1
    head = seeded(
        lambda: nn.Sequential(nn.Linear(features.shape[1], config.features), nn.Linear(config.features, people)),
        rng.child("start"),
    )
    data = torch.utils.data.TensorDataset(scale * features, labels)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # opacus tells of its generator, and torch of hooks on a first layer
        multiplier, spent = _fit(head, data, config, rng)
    first = head[0]
    assert isinstance(first, nn.Linear)
    with torch.no_grad():
        accuracy = float((head(scale * features).argmax(1) == labels).float().mean())
    network = backbone.projected(scale * first.weight.detach(), first.bias.detach())
    return DpSgdTrained(network, multiplier, spent, accuracy)


def _fit(head: nn.Module, data: Any, config: DpSgdConfig, rng: Randomness) -> tuple[float, float | None]:
    sgd = torch.optim.SGD(head.parameters(), lr=config.rate, momentum=config.momentum)
    loader = torch.utils.data.DataLoader(
        data, batch_size=min(config.batch, len(data)), shuffle=True, generator=rng.child("batches").torch()
    )
    if config.epsilon is None:
        _epochs(head, sgd, loader, config.epochs)
        return 0.0, None
    try:
        from opacus import PrivacyEngine
    except ImportError as error:
        raise ConfigError(_MISSING) from error
    engine = PrivacyEngine(accountant="rdp")  # a little looser than PRV, and much quicker to calibrate
    private, optimizer, drawn = engine.make_private_with_epsilon(
        module=head, optimizer=sgd, data_loader=loader, target_epsilon=config.epsilon, target_delta=config.delta,
        epochs=config.epochs, max_grad_norm=config.clip, noise_generator=rng.child("noise").torch(),
    )  # fmt: skip
    _epochs(private, optimizer, drawn, config.epochs)
    private.remove_hooks()
    return float(optimizer.noise_multiplier), float(engine.get_epsilon(config.delta))


def _epochs(head: nn.Module, optimizer: Any, loader: Any, epochs: int) -> None:
    head.train()
    for _ in range(epochs):
        for images, people in loader:
            optimizer.zero_grad()
            if len(images):  # a Poisson draw may be empty
                F.cross_entropy(head(images), people).backward()  # type: ignore[no-untyped-call]
                optimizer.step()
    head.eval()
