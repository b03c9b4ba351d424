"""The rivals of PEPR-Net's study: a head trained by DP-SGD, the same without noise, and blurred heads."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from studies.peprnet.data import embedded
from studies.peprnet.plan import DPSGD, FROZEN, PeprStudyConfig
from veilkit.configs import check_range
from veilkit.errors import ConfigError
from veilkit.methods.controls import Blur
from veilkit.networks.reid import ReidNetwork, ReidNetworkConfig, channels_last, save_reid
from veilkit.rng import Randomness
from veilkit.training.fitting import seeded
from veilkit.training.pixels import read_pixels
from veilkit.training.reid_learner import start_from
from veilkit.types import ImageBatch, Split

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


HEAD = 0.22  # of a person crop's height, as the control `mask --preset head`


def train_head(name: str, split: Split, config: PeprStudyConfig, init: Path | None, out: Path) -> dict[str, Any]:
    """A linear head on the frozen backbone, by DP-SGD or without noise, written to `out`; and what it took."""
    method = config.method
    shape = ReidNetworkConfig(
        backbone=method.backbone, size=method.size, last_stride=method.last_stride, feature="pooled"
    )
    backbone = seeded(lambda: ReidNetwork(shape), Randomness.from_seed(config.seed).child("frozen"))
    if init is None:
        raise ConfigError(
            f"{name} learns on a frozen backbone, which needs weights to start from; give some (--init)"
        )
    start_from(backbone, init, method.backbone)
    channels_last(backbone.eval())
    people = {person: label for label, person in enumerate(split.identities)}
    labels = torch.tensor([people[str(record.identity)] for record in split.records])
    features = torch.from_numpy(embedded(backbone, read_pixels(split, method.size)))
    epsilon = config.dp_epsilon if name == DPSGD else None
    recipe = DpSgdConfig(
        epsilon=epsilon, delta=1.0 / (10 * len(split)), features=method.features, epochs=config.dp_epochs,
        seed=config.seed,
    )  # fmt: skip
    trained = train_dpsgd(backbone, features, labels, recipe)
    save_reid(out, trained.network)
    return {
        "epsilon": trained.epsilon, "delta": recipe.delta, "multiplier": trained.multiplier,
        "training accuracy": trained.accuracy,
    }  # fmt: skip


def heads_blurred(pixels: Tensor) -> Tensor:
    """uint8 pictures (N, 3, H, W) with the upper part, where heads are, blurred as by the control `blur`."""
    top = max(1, round(HEAD * pixels.shape[2]))
    images = pixels.float().div_(255)
    names = ("",) * len(images)
    blurred = Blur().protect(ImageBatch(images, names), rng=Randomness.from_seed(0)).images
    assert blurred is not None
    images[:, :, :top] = blurred[:, :, :top]
    return images.mul_(255).round_().to(torch.uint8)


__all__ = ["DPSGD", "FROZEN", "heads_blurred", "train_head"]
