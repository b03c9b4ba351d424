"""One Re-ID training run: its data, network and optimizers, the step, and the state on disk."""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict
from pathlib import Path
from typing import Any, cast

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from torch import Tensor, nn

from veilkit.checkpoint import check_weights, load_checkpoint, load_weights, save_checkpoint
from veilkit.datasets.augment import augment
from veilkit.datasets.sampler import PKSampler
from veilkit.datasets.views import Views, moved
from veilkit.errors import CheckpointError, ConfigError, DataError
from veilkit.networks.backbones import BACKBONE_KIND
from veilkit.networks.losses import Centres, weighted_regularised_triplet
from veilkit.networks.reid import REID_KIND, ReidNetwork, ReidNetworkConfig, channels_last
from veilkit.rng import Randomness
from veilkit.training.pixels import read_labels, read_pixels, split_digest
from veilkit.training.reid_config import ReidConfig
from veilkit.training.retrieval import embed_pixels
from veilkit.training.schedule import Schedule
from veilkit.training.state import (
    MovingAverage,
    of_prefix,
    pack_optimizer,
    read_counts,
    read_state,
    unpack_optimizer,
    with_prefix,
)
from veilkit.types import Split


def discriminant(features: Tensor, people: Tensor, count: int, shrinkage: float) -> tuple[Tensor, Tensor]:
    """Weight (count, D) and bias (count,) of the projection fitted to features (N, D) of people (N,).

    The projected features have mean 0 over the images and, apart from shrinkage, covariance 1 within a person.
    No more than D directions, and one less than there are people, can be found; a larger `count` gets so many.
    """
    classes = len(torch.unique(people))
    if classes < 2 or classes == len(people):
        raise DataError(f"expected several images of at least two people, but got {len(people)} of {classes}")
    count = min(count, features.shape[1], classes - 1)
    analysis = LinearDiscriminantAnalysis(solver="eigen", shrinkage=shrinkage, n_components=count)
    analysis.fit(features.double().numpy(), people.numpy())
    weight = torch.from_numpy(analysis.scalings_[:, :count].T.copy()).float()
    return weight, -weight @ features.mean(0)


def project(network: ReidNetwork, pixels: Tensor, people: Tensor, count: int, shrinkage: float) -> ReidNetwork:
    """`network` with the projection that its features of these pictures, and of their mirror images, ask for."""
    features = torch.cat(
        [embed_pixels(network, pixels, flip=False), embed_pixels(network, pixels.flip(3), flip=False)]
    )
    return network.projected(*discriminant(features, people.repeat(2), count, shrinkage))


STATE_KIND = "reid-training"


class ReidRun:
    """A run between two epochs, `epoch` of which are done.

    targets: logits (N, C) of a teacher on each image of `train`, to be matched in place of the labels, which then
    only fill the batches; or its views, which the images then take in turn and are not varied otherwise.
    """

    def __init__(
        self, train: Split, config: ReidConfig, init: Path | None = None, targets: Tensor | Views | None = None
    ) -> None:
        self._labels = read_labels(train)
        if config.frozen and init is None:
            raise ConfigError(
                f"frozen={config.frozen} keeps the first parts of the backbone as they start, "
                "which needs weights to start from; give some, or set frozen to 0"
            )
        known = torch.from_numpy(targets.logits) if isinstance(targets, Views) else targets
        if known is not None and known.ndim == 2:
            known = known[None]  # one view, at rest
        if known is not None and (known.ndim != 3 or known.shape[1] != len(train)):
            raise DataError(
                f"expected soft targets of shape ({len(train)}, classes), but got {tuple(known.shape[1:])}"
            )
        classes = len(train.identities) if known is None else known.shape[2]
        self.config = config
        self.epoch = 0
        self._steps = 0
        self._rng = Randomness.from_seed(config.seed).child("reid")
        self._targets = known  # (views, N, C)
        self._moves = targets.moves if isinstance(targets, Views) else None
        self._pixels = read_pixels(train, config.stored or config.size)
        self._sampler = PKSampler(tuple(self._labels.tolist()), config.identities, config.images)
        self._schedule = Schedule(config.epochs, config.warmup, config.decay)
        with torch.random.fork_rng():  # torch's layers start from its global generator
            torch.manual_seed(self._rng.child("start").integer(0, 2**63))
            self._network = ReidNetwork(network_config(config, classes))
            self._centres = Centres(classes, config.reduced or self._network.backbone.channels)
        self._fingerprint = _fingerprint(train, config)
        if known is not None:
            held = hashlib.sha256(known.float().contiguous().numpy().tobytes())
            held.update(b"" if self._moves is None else self._moves.tobytes())
            self._fingerprint["targets"] = held.hexdigest()
        if init is not None:
            self._fingerprint["init"] = start_from(self._network, init, config.backbone)
        channels_last(self._network)
        self._frozen = freeze(self._network, config.frozen)
        self._average = MovingAverage(self._network, config.average)
        self._adam = reid_adam(self._network, config)
        self._sgd = torch.optim.SGD(self._centres.parameters(), config.centre_rate)

    def batches(self, epoch: int) -> list[NDArray[np.int64]]:
        """The batches of `epoch`, as positions in the split."""
        return self._sampler.epoch(self._rng, epoch)

    def step(self, step: int, positions: NDArray[np.int64], progress: float) -> float:
        """One update on the batch `step` of the current epoch, `progress` (0 to 1) of which is done; the loss."""
        config = self.config
        factor = self._schedule.factor(self.epoch + progress)
        for group in self._adam.param_groups:
            group["lr"] = config.rate * factor * group["scale"]
        images = self._varied(positions, step)
        labels = self._labels[positions]
        self._train_mode()
        output = self._network(images, config.size_at(self.epoch))
        loss = torch.stack([self._identity_loss(logits, positions) for logits in output.logits]).mean()
        if config.triplet:
            loss = loss + config.triplet * weighted_regularised_triplet(output.pooled[0], labels)
        self._adam.zero_grad(set_to_none=True)
        self._sgd.zero_grad(set_to_none=True)
        if config.centre:
            loss = loss + config.centre * self._centres(output.pooled[0], labels)
        loss.backward()  # type: ignore[no-untyped-call]
        self._adam.step()
        if config.centre:
            # The centres follow at a rate of their own, whatever the loss's weight.
            for parameter in self._centres.parameters():
                if parameter.grad is not None:
                    parameter.grad /= config.centre
            self._sgd.step()
        self._average.update(self._network, self._steps)
        self._steps += 1
        return loss.item()

    def _varied(self, positions: NDArray[np.int64], step: int) -> Tensor:
        pixels = self._pixels[positions]
        if self._moves is None:
            return augment(pixels, self.config.augment, self._rng.child("augment", self.epoch, step))
        images = pixels.float().div_(255)
        turns = self._turns(positions)
        for turn in np.unique(turns):
            chosen = torch.from_numpy(np.flatnonzero(turns == turn))
            images[chosen] = moved(images[chosen], self._moves[turn])
        return images

    def _turns(self, positions: NDArray[np.int64]) -> NDArray[np.int64]:
        """Which view each picture is seen in: another one in each epoch, and different ones in one batch."""
        return (positions + self.epoch) % (1 if self._moves is None else len(self._moves))

    def finished(self) -> ReidNetwork:
        """The network to keep, in evaluation mode: averaged and projected where the recipe asks for it."""
        network, config = self._averaged(), self.config
        if config.projected:
            return project(network, self._pixels, self._labels, config.projected, config.shrinkage)
        return network

    def _averaged(self) -> ReidNetwork:
        network = ReidNetwork(self._network.config)
        load_weights(network, self._average.tensors if self.config.average else self._network.state_dict(), "run")
        return channels_last(network.eval())

    def save(self, path: Path) -> None:
        """Write everything that the next epoch depends on."""
        tensors = {
            **with_prefix("network", self._network.state_dict()),
            **with_prefix("average", self._average.tensors),
            **with_prefix("centres", self._centres.state_dict()),
            **with_prefix("adam", pack_optimizer(self._adam)),
        }
        save_checkpoint(
            path, tensors, {"epoch": self.epoch, "steps": self._steps, "run": self._fingerprint}, STATE_KIND
        )

    def restore(self, path: Path) -> None:
        """Go on from what `save` wrote; refuses the state of another recipe, start or dataset."""
        saved = read_state(path, STATE_KIND, self._fingerprint)
        counts = read_counts(saved, path, {"epoch": self.config.epochs, "steps": 2**40})
        self.epoch, self._steps = counts["epoch"], counts["steps"]
        load_weights(self._network, of_prefix("network", saved.tensors), path.name)
        load_weights(self._centres, of_prefix("centres", saved.tensors), path.name)
        unpack_optimizer(self._adam, of_prefix("adam", saved.tensors))
        average = of_prefix("average", saved.tensors)
        check_weights(self._network, average, path.name)
        for name, value in average.items():
            self._average.tensors[name].copy_(value)

    def _identity_loss(self, logits: Tensor, positions: NDArray[np.int64]) -> Tensor:
        """Cross-entropy to the labels, or the divergence KL(teacher || student) from the soft targets."""
        config = self.config
        if self._targets is not None:
            teacher = (self._targets[self._turns(positions), positions] / config.temperature).log_softmax(1)
            student = (logits / config.temperature).log_softmax(1)
            return F.kl_div(student, teacher, reduction="batchmean", log_target=True) * config.temperature**2
        labels = self._labels[positions]
        handicap = config.cosine * config.margin * F.one_hot(labels, logits.shape[1])
        return F.cross_entropy(logits - handicap, labels, label_smoothing=config.smoothing)

    def _train_mode(self) -> None:
        self._network.train()
        for part in self._frozen:
            part.eval()


def network_config(config: ReidConfig, identities: int) -> ReidNetworkConfig:
    """The network that a recipe asks for, with a classifier of so many people."""
    return ReidNetworkConfig(
        backbone=config.backbone,
        size=config.size,
        last_stride=config.last_stride,
        bands=config.bands,
        reduced=config.reduced,
        identities=identities,
        cosine=config.cosine,
        feature=config.feature,
    )


def _fingerprint(train: Split, config: ReidConfig) -> dict[str, Any]:
    """What makes two runs the same one; survives JSON."""
    whole: dict[str, Any] = json.loads(json.dumps({**asdict(config), "data": split_digest(train)}))
    return whole


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


def reid_adam(network: ReidNetwork, config: ReidConfig) -> torch.optim.Adam:
    """Adam over what learns, in two groups, each with the `scale` of its rate: the backbone and the heads."""

    def learning(module: nn.Module) -> list[Tensor]:
        return [parameter for parameter in module.parameters() if parameter.requires_grad]

    groups = [
        {"params": learning(cast(nn.Module, network.backbone)), "scale": 1.0},
        {"params": learning(network.heads), "scale": config.head_rate},
    ]
    return torch.optim.Adam(groups, lr=config.rate, weight_decay=config.weight_decay)
