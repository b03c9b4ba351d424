"""The training of PEPR-Net: encoder, De-ID decoder and adversary; the step, the loop, and the state on disk."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TextIO

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from torch import Tensor, nn

from veilkit.checkpoint import save_checkpoint, understood
from veilkit.configs import read_facts
from veilkit.methods.base import Method
from veilkit.methods.controls import Blur, Mask, MaskConfig, Pixelate
from veilkit.methods.peprnet.config import Deid, PeprNetConfig, decoder_config, encoder_config
from veilkit.methods.peprnet.deid_decoder import DeidDecoder, levelled
from veilkit.networks.losses import hinge_triplet, uniform_cross_entropy
from veilkit.networks.reid import ReidNetwork, channels_last
from veilkit.progress import Progress
from veilkit.rng import Randomness
from veilkit.training.fitting import seeded
from veilkit.training.loop import Decay, Schedule, follow, keep_memory, train_epochs
from veilkit.training.pixels import LabelledBatches, read_pixels
from veilkit.training.reid_learner import check_start, freeze, start_from
from veilkit.training.retrieval import Holdout, evaluate_reid, hold_out
from veilkit.training.state import Parts, pack, read_counts, read_state, run_facts, unpack
from veilkit.types import ImageBatch, Split

STATE_KIND = "peprnet-training"
_OBFUSCATE = MaskConfig(colour="mean")
_CONTROLS: Mapping[Deid, Callable[[], Method[Any]]] = {
    "pixelate": Pixelate,
    "blur": Blur,
    "obfuscate": lambda: Mask(_OBFUSCATE),
}


@dataclass(frozen=True, slots=True)
class Target:
    """What the De-ID decoder must draw of a picture. name: fingerprint, for states on disk.

    apply: images (N, 3, H, W) in [0, 1] to de-identified ones.
    """

    name: str
    apply: Callable[[Tensor], Tensor]


def deid_target(config: PeprNetConfig) -> Target | None:
    """What the decoder of a configuration must draw; None without a decoder. Nothing of it is random."""
    if config.deid == "none":
        return None
    if config.deid == "clean":
        return Target("clean", lambda images: images)
    control = _CONTROLS[config.deid]()
    rng = Randomness.from_seed(config.seed).child("deid")

    def apply(images: Tensor) -> Tensor:
        made = control.protect(ImageBatch(images, ("",) * len(images)), rng=rng).images
        assert made is not None
        return made

    return Target(control.fingerprint(), apply)


@dataclass(frozen=True, slots=True)
class Losses:
    """Of one update: Eq. 1, Eq. 2 and Eq. 3 without their weights, and what an alternating head minimises."""

    reid: float
    deid: float
    adversary: float
    head: float

    def __str__(self) -> str:
        return f"losses: Re-ID {self.reid:.3f}, De-ID {self.deid:.4f}, adversary {self.adversary:.3f}"


class PeprRun:
    """A run between two epochs, `epoch` of which are done.

    history: the mean losses of each epoch and the root mean square of the adversary's weights, which tells whether
    it gave up.
    """

    def __init__(self, train: Split, config: PeprNetConfig, init: Path | None = None) -> None:
        check_start(config.frozen, init)
        self.config, self.epoch = config, 0
        self.history: list[dict[str, float]] = []
        self._losses: list[Losses] = []  # of this epoch
        self._target = deid_target(config)
        rng = Randomness.from_seed(config.seed).child("peprnet")
        self.data = LabelledBatches(train, config.size, (config.identities, config.images), config.augment, rng)
        self.batches = self.data.batches
        start = rng.child("start")
        self.encoder = seeded(lambda: ReidNetwork(encoder_config(config)), start.child("encoder"))
        self.decoder = None
        if self._target is not None:
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
        target = None if self._target is None else self._target.name
        self._facts = run_facts(config, train, target=target, init=started)

    def step(self, step: int, positions: NDArray[np.int64], progress: float) -> Losses:
        """One update (Eq. 4) on the batch `step` of this epoch, `progress` (0 to 1) of which is done."""
        config = self.config
        images, labels = self.data.varied(positions, self.epoch, step)
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
        _descend(self._adam, total, config.rate * factor)
        self._losses.append(Losses(reid.item(), deid.item(), adversary.item(), taught))
        return self._losses[-1]

    def close_epoch(self) -> None:
        """Note the mean losses of the epoch that was just done."""
        means = {name: float(np.mean([getattr(each, name) for each in self._losses])) for name in Losses.__slots__}
        self._losses = []
        weight = float(self.head.weight.detach().square().mean().sqrt())
        self.history.append({"epoch": self.epoch, **means, "head weight": weight})

    def save(self, path: Path) -> None:
        """Write everything that the next epoch depends on."""
        config = {"epoch": self.epoch, "history": self.history, "run": self._facts}
        save_checkpoint(path, pack(self._parts()), config, STATE_KIND)

    def restore(self, path: Path) -> None:
        """Go on from what `save` wrote; refuses the state of another recipe, start or dataset."""
        saved = read_state(path, STATE_KIND, self._facts)
        with understood(path.name):
            history = read_facts(saved.config, {"history": tuple[dict[str, Any], ...]})["history"]
        self.epoch, self.history = read_counts(saved, path, {"epoch": self.config.epochs})["epoch"], list(history)
        unpack(self._parts(), saved.tensors, path.name)

    def _parts(self) -> Parts:
        parts: Parts = {
            "encoder": self.encoder, "head": self.head, "adam": self._adam, "head adam": self._head_adam
        }  # fmt: skip
        return parts if self.decoder is None else {**parts, "decoder": self.decoder}

    def _teach_head(self, features: Tensor, labels: Tensor, factor: float) -> float:
        """The alternating head learns who is in the batch, among all training people; features are detached."""
        loss = F.cross_entropy(self.head(features), labels)
        _descend(self._head_adam, loss, self.config.rate * self.config.head_rate * factor)
        return loss.item()

    def _head_weights(self) -> Tensor:
        """Of the paper's head, which follows the same loss; or of one that the encoder only fools."""
        weight = self.head.weight
        return weight if self.config.adversary == "uniform" else weight.detach()

    def _train_mode(self) -> None:
        self.encoder.train()
        for part in self._frozen:
            part.eval()


def _descend(optimizer: torch.optim.Optimizer, loss: Tensor, rate: float) -> None:
    optimizer.zero_grad(set_to_none=True)
    loss.backward()  # type: ignore[no-untyped-call]
    follow(optimizer, rate)


@dataclass(frozen=True, slots=True, eq=False)
class TrainedPepr:
    """What training leaves, in evaluation mode, and the losses of each epoch. The adversary's head is thrown away."""

    encoder: ReidNetwork
    decoder: DeidDecoder | None
    history: tuple[dict[str, float], ...]


def train_peprnet(
    split: Split,
    config: PeprNetConfig,
    *,
    work_dir: Path,
    init: Path | None = None,
    stream: TextIO | None = None,
) -> TrainedPepr:
    """Train encoder, decoder and adversary together on the labelled people of `split` (Eq. 4).

    work_dir: gets the state after each epoch, from which the same run goes on. init: weights of the encoder's
    backbone.
    """
    keep_memory()
    rng = Randomness.from_seed(config.seed).child("peprnet")
    watched = hold_out(split, config.validation, rng) if config.validation else None
    run = PeprRun(split if watched is None else watched.train, config, init)
    state = Path(work_dir) / "state.safetensors"
    if state.exists():
        run.restore(state)

    def after_epoch(progress: Progress) -> None:
        run.close_epoch()
        run.save(state)
        if watched is not None:
            progress.say(_validation(run, watched))

    train_epochs(run, config.epochs, after_epoch, stream=stream)
    decoder = None if run.decoder is None else run.decoder.eval()
    return TrainedPepr(run.encoder.eval(), decoder, tuple(run.history))


def _validation(run: PeprRun, people: Holdout) -> str:
    size = run.config.size
    pixels = read_pixels(people.query, size), read_pixels(people.gallery, size)
    found = evaluate_reid(run.encoder, people.query, people.gallery, *pixels)
    return f"epoch {run.epoch}: validation Rank-1 {found.rank(1):.1%}, mAP {found.mean_ap:.1%}"
