"""One training run of PEPR-Net: encoder, De-ID decoder and adversary; the step, and the state on disk."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, TextIO, cast

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from torch import Tensor, nn

from veilkit.checkpoint import load_weights, save_checkpoint, understood
from veilkit.configs import read_facts
from veilkit.datasets.augment import augment
from veilkit.datasets.sampler import PKSampler
from veilkit.errors import ConfigError
from veilkit.methods.peprnet.deid_decoder import DeidDecoder, DeidDecoderConfig, levelled
from veilkit.methods.peprnet.training.config import PeprTrainingConfig
from veilkit.networks.losses import hinge_triplet, uniform_cross_entropy
from veilkit.networks.reid import ReidNetwork, ReidNetworkConfig, channels_last
from veilkit.progress import Progress
from veilkit.rng import Randomness
from veilkit.training.allocator import keep_memory, without_denormals
from veilkit.training.fitting import seeded
from veilkit.training.pixels import read_labels, read_pixels, split_digest
from veilkit.training.reid_run import freeze, start_from
from veilkit.training.retrieval import Holdout, evaluate_reid, hold_out
from veilkit.training.schedule import Decay, Schedule
from veilkit.training.state import of_prefix, pack_optimizer, read_counts, read_state, unpack_optimizer, with_prefix
from veilkit.types import Split

STATE_KIND = "peprnet-training"


@dataclass(frozen=True, slots=True)
class Target:
    """What the De-ID decoder must draw of a picture. name: fingerprint, for states on disk.

    apply: images (N, 3, H, W) in [0, 1] to de-identified ones.
    """

    name: str
    apply: Callable[[Tensor], Tensor]


@dataclass(frozen=True, slots=True)
class Losses:
    """Of one update: Eq. 1, Eq. 2 and Eq. 3 without their weights, and what an alternating head minimises."""

    reid: float
    deid: float
    adversary: float
    head: float


class PeprRun:
    """A run between two epochs, `epoch` of which are done.

    target: of the De-ID decoder; None trains without one. history: the mean losses of each epoch and the root mean
    square of the adversary's weights, which tells whether it gave up.
    """

    def __init__(
        self, train: Split, config: PeprTrainingConfig, target: Target | None, init: Path | None = None
    ) -> None:
        self._labels = read_labels(train)
        if config.frozen and init is None:
            raise ConfigError(
                f"frozen={config.frozen} keeps the first parts of the backbone as they start, which needs weights to "
                "start from; give some (--init), or set frozen to 0"
            )
        self.config, self.epoch = config, 0
        self.history: list[dict[str, float]] = []
        self._target = target
        self._rng = Randomness.from_seed(config.seed).child("peprnet")
        self._sampler = PKSampler(tuple(self._labels.tolist()), config.identities, config.images)
        self._pixels = read_pixels(train, config.size)
        start = self._rng.child("start")
        self.encoder = seeded(lambda: ReidNetwork(encoder_config(config)), start.child("encoder"))
        self.decoder = None
        if target is not None:
            self.decoder = seeded(lambda: DeidDecoder(decoder_config(config)), start.child("decoder"))
        # Without bias: the paper's is a softmax layer on the features, and a bias knows nothing of a picture.
        self.head = seeded(lambda: nn.Linear(config.features, len(train.identities), bias=False), start.child("head"))
        started = None if init is None else start_from(self.encoder, init, config.backbone)
        channels_last(self.encoder)
        self._frozen = freeze(self.encoder, config.frozen)
        self._schedule = Schedule(config.epochs, 0.0, Decay.EXPONENTIAL)
        joint = [*self.encoder.parameters(), *([] if self.decoder is None else self.decoder.parameters())]
        joint += self.head.parameters() if config.adversary == "uniform" else []
        self._adam = torch.optim.Adam([p for p in joint if p.requires_grad], lr=config.rate)
        self._head_adam = torch.optim.Adam(self.head.parameters(), lr=config.rate * config.head_rate)
        self._facts = _facts(train, config, target, started)

    def batches(self, epoch: int) -> list[NDArray[np.int64]]:
        """The batches of `epoch`, as positions in the split."""
        return self._sampler.epoch(self._rng, epoch)

    def varied(self, positions: NDArray[np.int64], step: int) -> tuple[Tensor, Tensor]:
        """Augmented pictures (N, 3, H, W) in [0, 1] and their labels (N,)."""
        rng = self._rng.child("augment", self.epoch, step)
        return augment(self._pixels[positions], self.config.augment, rng), self._labels[positions]

    def step(self, step: int, positions: NDArray[np.int64], progress: float) -> Losses:
        """One update (Eq. 4) on the batch `step` of this epoch, `progress` (0 to 1) of which is done."""
        config = self.config
        images, labels = self.varied(positions, step)
        factor = self._schedule.factor(self.epoch + progress)
        self._train_mode()
        raw = self.encoder.embed(images)
        compared, shown = (F.normalize(raw), levelled(raw)) if config.unit else (raw, raw)
        taught = self._teach_head(shown.detach(), labels, factor) if config.adversary == "alternating" else 0.0
        reid = hinge_triplet(compared, labels, margin=config.margin, mining=config.mining)
        total, deid, adversary = config.reid_weight * reid, reid.new_zeros(()), reid.new_zeros(())
        if self.decoder is not None and self._target is not None:
            deid = (self.decoder(shown) - self._target.apply(images)).square()
            deid = deid.sum() if config.deid_sum else deid.mean()
            total = total + config.deid_weight * deid
        if config.adversary != "none":
            # K counts the identities of the mini-batch: the others' columns take no part.
            logits = F.linear(shown, self._head_weights()[torch.unique(labels)])
            adversary = uniform_cross_entropy(logits)
            total = total + config.adversary_weight * adversary
        _follow(self._adam, total, config.rate * factor)
        return Losses(reid.item(), deid.item(), adversary.item(), taught)

    def close_epoch(self, losses: list[Losses]) -> None:
        """Count the epoch and note its mean losses."""
        self.epoch += 1
        means = {name: float(np.mean([getattr(each, name) for each in losses])) for name in Losses.__slots__}
        weight = float(self.head.weight.detach().square().mean().sqrt())
        self.history.append({"epoch": self.epoch, **means, "head weight": weight})

    def save(self, path: Path) -> None:
        """Write everything that the next epoch depends on."""
        tensors = {
            **with_prefix("encoder", self.encoder.state_dict()),
            **with_prefix("head", self.head.state_dict()),
            **with_prefix("adam", pack_optimizer(self._adam)),
            **with_prefix("head adam", pack_optimizer(self._head_adam)),
        }
        if self.decoder is not None:
            tensors |= with_prefix("decoder", self.decoder.state_dict())
        save_checkpoint(path, tensors, {"epoch": self.epoch, "history": self.history, "run": self._facts}, STATE_KIND)

    def restore(self, path: Path) -> None:
        """Go on from what `save` wrote; refuses the state of another recipe, start or dataset."""
        saved = read_state(path, STATE_KIND, self._facts)
        with understood(path.name):
            history = read_facts(saved.config, {"history": tuple[dict[str, Any], ...]})["history"]
        self.epoch, self.history = read_counts(saved, path, {"epoch": self.config.epochs})["epoch"], list(history)
        load_weights(self.encoder, of_prefix("encoder", saved.tensors), path.name)
        load_weights(self.head, of_prefix("head", saved.tensors), path.name)
        if self.decoder is not None:
            load_weights(self.decoder, of_prefix("decoder", saved.tensors), path.name)
        unpack_optimizer(self._adam, of_prefix("adam", saved.tensors))
        unpack_optimizer(self._head_adam, of_prefix("head adam", saved.tensors))

    def _teach_head(self, features: Tensor, labels: Tensor, factor: float) -> float:
        """The alternating head learns who is in the batch, among all training people; features are detached."""
        loss = F.cross_entropy(self.head(features), labels)
        _follow(self._head_adam, loss, self.config.rate * self.config.head_rate * factor)
        return loss.item()

    def _head_weights(self) -> Tensor:
        """Of the paper's head, which follows the same loss; or of one that the encoder only fools."""
        weight = self.head.weight
        return weight if self.config.adversary == "uniform" else weight.detach()

    def _train_mode(self) -> None:
        self.encoder.train()
        for part in self._frozen:
            part.eval()


def encoder_config(config: PeprTrainingConfig) -> ReidNetworkConfig:
    """A backbone, pooling and a linear layer to D features; nothing after it."""
    return ReidNetworkConfig(
        backbone=config.backbone, size=config.size, last_stride=config.last_stride, reduced=config.features,
        feature="pooled",
    )  # fmt: skip


def decoder_config(config: PeprTrainingConfig) -> DeidDecoderConfig:
    """The decoder that goes with the encoder."""
    return DeidDecoderConfig(config.features, config.size, config.decoder_width)


def _follow(optimizer: torch.optim.Optimizer, loss: Tensor, rate: float) -> None:
    for group in optimizer.param_groups:
        group["lr"] = rate
    optimizer.zero_grad(set_to_none=True)
    loss.backward()  # type: ignore[no-untyped-call]
    optimizer.step()


def _facts(
    train: Split, config: PeprTrainingConfig, target: Target | None, started_from: str | None
) -> dict[str, Any]:
    """What makes two runs the same one, as JSON values."""
    facts = {
        **asdict(config),
        "data": split_digest(train),
        "target": None if target is None else target.name,
        "init": started_from,
    }
    return cast(dict[str, Any], json.loads(json.dumps(facts)))


@dataclass(frozen=True, slots=True, eq=False)
class TrainedPepr:
    """What training leaves, in evaluation mode, and the losses of each epoch. The adversary's head is thrown away."""

    encoder: ReidNetwork
    decoder: DeidDecoder | None
    history: tuple[dict[str, float], ...]


def train_peprnet(
    split: Split,
    config: PeprTrainingConfig,
    target: Target | None,
    *,
    work_dir: Path,
    init: Path | None = None,
    stream: TextIO | None = None,
) -> TrainedPepr:
    """Train encoder, decoder and adversary together on the labelled people of `split` (Eq. 4).

    target: what the decoder must draw; None trains without one. work_dir: gets the state after each epoch, from which
    the same run goes on. init: weights of the encoder's backbone.
    """
    keep_memory()
    rng = Randomness.from_seed(config.seed).child("peprnet")
    watched = hold_out(split, config.validation, rng) if config.validation else None
    run = PeprRun(split if watched is None else watched.train, config, target, init)
    state = Path(work_dir) / "state.safetensors"
    if state.exists():
        run.restore(state)
    steps = len(run.batches(0))
    bar = Progress(config.epochs * steps, "training", done=run.epoch * steps, stream=stream)
    with without_denormals(), bar as progress:
        while run.epoch < config.epochs:
            _train_epoch(run, progress)
            run.save(state)
            if watched is not None:
                progress.say(_validation(run, watched))
    decoder = None if run.decoder is None else run.decoder.eval()
    return TrainedPepr(run.encoder.eval(), decoder, tuple(run.history))


def _train_epoch(run: PeprRun, progress: Progress) -> None:
    batches, losses = run.batches(run.epoch), []
    for step, positions in enumerate(batches):
        found = run.step(step, positions, step / len(batches))
        losses.append(found)
        progress.advance(
            1,
            f"epoch {run.epoch + 1}/{run.config.epochs}, losses: Re-ID {found.reid:.3f}, De-ID {found.deid:.4f}, "
            f"adversary {found.adversary:.3f}",
        )
    run.close_epoch(losses)


def _validation(run: PeprRun, people: Holdout) -> str:
    size = run.config.size
    pixels = read_pixels(people.query, size), read_pixels(people.gallery, size)
    found = evaluate_reid(run.encoder, people.query, people.gallery, *pixels)
    return f"epoch {run.epoch}: validation Rank-1 {found.rank(1):.1%}, mAP {found.mean_ap:.1%}"
