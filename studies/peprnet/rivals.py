"""The rivals of PEPR-Net's study: a head trained by DP-SGD, the same without noise, and blurred heads."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from studies.peprnet.data import embedded
from studies.peprnet.dpsgd import DpSgdConfig, train_dpsgd
from studies.peprnet.plan import DPSGD, FROZEN, PeprStudyConfig
from veilkit.errors import ConfigError
from veilkit.methods.controls import Blur
from veilkit.networks.reid import ReidNetwork, ReidNetworkConfig, channels_last, save_reid
from veilkit.rng import Randomness
from veilkit.training.fitting import seeded
from veilkit.training.pixels import read_pixels
from veilkit.training.reid_learner import start_from
from veilkit.types import ImageBatch, Split

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
