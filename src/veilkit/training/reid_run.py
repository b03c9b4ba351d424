"""One Re-ID training run: its data, its network, the step, and the state on disk."""

from __future__ import annotations

import hashlib
from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from torch import Tensor

from veilkit.checkpoint import check_weights, load_weights, save_checkpoint
from veilkit.datasets.soft_labels import Views, moved
from veilkit.errors import DataError
from veilkit.networks.losses import weighted_regularised_triplet
from veilkit.networks.reid import ReidNetwork, channels_last
from veilkit.rng import Randomness
from veilkit.training.loop import Schedule
from veilkit.training.pixels import LabelledBatches
from veilkit.training.reid_config import ReidConfig
from veilkit.training.reid_learner import ReidLearner, label_loss
from veilkit.training.retrieval import embed_pixels
from veilkit.training.state import (
    MovingAverage,
    of_prefix,
    pack,
    read_counts,
    read_state,
    run_facts,
    unpack,
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
        known = torch.from_numpy(targets.logits) if isinstance(targets, Views) else targets
        if known is not None and known.ndim == 2:
            known = known[None]  # one view, at rest
        if known is not None and (known.ndim != 3 or known.shape[1] != len(train)):
            raise DataError(
                f"expected soft targets of shape ({len(train)}, classes), but got {tuple(known.shape[1:])}"
            )
        self.config, self.epoch, self._steps = config, 0, 0
        self._targets = known  # (views, N, C)
        self._moves = targets.moves if isinstance(targets, Views) else None
        self._schedule = Schedule(config.epochs, config.warmup, config.decay)
        rng = Randomness.from_seed(config.seed).child("reid")
        classes = len(train.identities) if known is None else known.shape[2]
        self._learner = ReidLearner(config, classes, rng.child("start"), init)
        self._network = self._learner.network
        self._average = MovingAverage(self._network, config.average)
        batch = config.identities, config.images
        self._data = LabelledBatches(train, config.stored or config.size, batch, config.augment, rng)
        self.batches = self._data.batches
        self._facts = run_facts(config, train)
        if known is not None:
            held = hashlib.sha256(known.float().contiguous().numpy().tobytes())
            held.update(b"" if self._moves is None else self._moves.tobytes())
            self._facts["targets"] = held.hexdigest()
        if init is not None:
            self._facts["init"] = self._learner.started_from

    def step(self, step: int, positions: NDArray[np.int64], progress: float) -> float:
        """One update on the batch `step` of the current epoch, `progress` (0 to 1) of which is done; the loss."""
        config, learner = self.config, self._learner
        images, labels = self._varied(positions, step)
        learner.train_mode()
        output = self._network(images, config.size_at(self.epoch))
        loss = torch.stack([self._identity_loss(logits, positions) for logits in output.logits]).mean()
        if config.triplet:
            loss = loss + config.triplet * weighted_regularised_triplet(output.pooled[0], labels)
        if config.centre:
            loss = loss + config.centre * learner.centres(output.pooled[0], labels)
        learner.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        learner.step(self._schedule.factor(self.epoch + progress))
        self._average.update(self._network, self._steps)
        self._steps += 1
        return loss.item()

    def _varied(self, positions: NDArray[np.int64], step: int) -> tuple[Tensor, Tensor]:
        if self._moves is None:
            return self._data.varied(positions, self.epoch, step)
        images = self._data.pixels[positions].float().div_(255)
        turns = self._turns(positions)
        for turn in np.unique(turns):
            chosen = torch.from_numpy(np.flatnonzero(turns == turn))
            images[chosen] = moved(images[chosen], self._moves[turn])
        return images, self._data.labels[positions]

    def _turns(self, positions: NDArray[np.int64]) -> NDArray[np.int64]:
        """Which view each picture is seen in: another one in each epoch, and different ones in one batch."""
        return (positions + self.epoch) % (1 if self._moves is None else len(self._moves))

    def finished(self) -> ReidNetwork:
        """The network to keep, in evaluation mode: averaged and projected where the recipe asks for it."""
        config, network = self.config, ReidNetwork(self._network.config)
        load_weights(network, self._average.tensors if config.average else self._network.state_dict(), "run")
        network = channels_last(network.eval())
        if config.projected:
            return project(network, self._data.pixels, self._data.labels, config.projected, config.shrinkage)
        return network

    def save(self, path: Path) -> None:
        """Write everything that the next epoch depends on."""
        tensors = pack(self._learner.parts) | with_prefix("average", self._average.tensors)
        known = {"epoch": self.epoch, "steps": self._steps, "run": self._facts}
        save_checkpoint(path, tensors, known, STATE_KIND)

    def restore(self, path: Path) -> None:
        """Go on from what `save` wrote; refuses the state of another recipe, start or dataset."""
        saved = read_state(path, STATE_KIND, self._facts)
        counts = read_counts(saved, path, {"epoch": self.config.epochs, "steps": 2**40})
        self.epoch, self._steps = counts["epoch"], counts["steps"]
        unpack(self._learner.parts, saved.tensors, path.name)
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
        return label_loss(logits, self._data.labels[positions], config)
