"""One training run of an anonymiser: two generators, two discriminators and a recogniser; the step and the state."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from veilkit.checkpoint import save_checkpoint, understood
from veilkit.configs import read_facts
from veilkit.errors import ConfigError
from veilkit.methods.privacyreid.config import PrivacyReidConfig
from veilkit.methods.privacyreid.supervision import Desensitiser, Supervision
from veilkit.networks.losses import weighted_regularised_triplet
from veilkit.networks.pix2pix import PatchGan, Pix2PixUNet, discriminator_loss, generator_loss
from veilkit.rng import Randomness
from veilkit.training.fitting import seeded
from veilkit.training.loop import Schedule, follow
from veilkit.training.pixels import LabelledBatches
from veilkit.training.reid_learner import ReidLearner, label_loss
from veilkit.training.state import Parts, of_prefix, pack, read_counts, read_state, unpack, with_prefix
from veilkit.types import Split

STATE_KIND = "anonymiser-training"
_RANGE = 2.0  # L1 is taken on [-1, 1], as in pix2pix, whose weight of 100 it goes with


def quantised_through(images: Tensor) -> Tensor:
    """Images in [0, 1] as an 8-bit file holds them; the gradient is that of the identity (straight through).

    >>> import torch
    >>> float(quantised_through(torch.tensor(0.5)) * 255)
    128.0
    """
    return images + (images.detach().mul(255).round_().clamp_(0, 255).div_(255) - images.detach())


class AnonymiserData(LabelledBatches):
    """The training people at the working size, and how their pictures are desensitised."""

    def __init__(self, train: Split, config: PrivacyReidConfig, desensitiser: Desensitiser) -> None:
        reid, rng = config.reid, Randomness.from_seed(config.reid.seed).child("anonymiser")
        super().__init__(train, config.size, (reid.identities, reid.images), reid.augment, rng)
        self.people = len(train.identities)
        self.desensitiser = desensitiser

    def desensitised(self, images: Tensor, epoch: int, step: int) -> Tensor:
        """What the supervision makes of a batch that `varied` gave; noise is drawn anew for each."""
        return self.desensitiser.apply(images, [f"{epoch}/{step}/{place}" for place in range(len(images))])


class JointReid(ReidLearner):
    """A recogniser trained on two kinds of pictures of the same people at once (Eq. 7)."""

    def loss(self, kinds: Sequence[Tensor], labels: Tensor) -> Tensor:
        """The sum of AGW's losses over some kinds of the same pictures, each (N, 3, H, W) in [0, 1] of `labels` (N,).

        All go through the network together, so that batch norm sees in training the mixture that it is tested on.
        """
        config = self.config
        self.train_mode()
        output = self.network(torch.cat(list(kinds)))
        losses = []
        for kind in range(len(kinds)):
            own = slice(kind * len(labels), (kind + 1) * len(labels))
            losses += [label_loss(logits[own], labels, config) / len(output.logits) for logits in output.logits]
            pooled = output.pooled[0][own]
            if config.triplet:
                losses.append(config.triplet * weighted_regularised_triplet(pooled, labels))
            if config.centre:
                losses.append(config.centre * self.centres(pooled, labels))
        return torch.stack(losses).sum()


@dataclass(frozen=True, slots=True)
class Losses:
    """Of one update: Eq. 3, Eq. 6, Eq. 7, and what both discriminators minimise."""

    anonymisation: float
    recovery: float
    reid: float
    discriminators: float

    def __str__(self) -> str:
        return (
            f"losses: anonymised {self.anonymisation:.2f}, recovered {self.recovery:.2f}, Re-ID {self.reid:.2f}, "
            f"discriminators {self.discriminators:.2f}"
        )


class AnonymiserRun:
    """A run between two epochs, `epoch` of which are done.

    anonymise (G_X): raw to anonymised. recover (G_Y): anonymised, as its 8-bit file holds it, to raw. target: the
    frozen generator that supervises after an upgrade; None where desensitised pictures do. supervision: None without
    upgradation. decisions: what was measured and decided at each check, as JSON values.
    """

    def __init__(
        self,
        data: AnonymiserData,
        config: PrivacyReidConfig,
        reid: JointReid,
        facts: dict[str, Any],
        supervision: Supervision | None,
    ) -> None:
        self.config, self.data, self.reid = config, data, reid
        self.epoch, self.supervision, self.batches = 0, supervision, data.batches
        self.decisions: list[dict[str, Any]] = []
        self.target: Pix2PixUNet | None = None
        self._facts = facts
        rng = Randomness.from_seed(config.reid.seed).child("anonymiser", "start")
        self.anonymise = seeded(lambda: Pix2PixUNet(config.generator), rng.child("G_X"))
        self.recover = seeded(lambda: Pix2PixUNet(config.generator), rng.child("G_Y"))
        self._judge_anonymised = seeded(lambda: PatchGan(config.discriminator), rng.child("D_Y"))
        self._judge_recovered = seeded(lambda: PatchGan(config.discriminator), rng.child("D_X"))
        self._schedule = Schedule(config.reid.epochs, config.reid.warmup, config.reid.decay, config.milestones)
        self._generators = self._adam(self.anonymise, self.recover)
        self._discriminators = self._adam(self._judge_anonymised, self._judge_recovered)

    def step(self, step: int, positions: NDArray[np.int64], progress: float) -> Losses:
        """One update of everything, on the batch `step` of this epoch, `progress` (0 to 1) of which is done."""
        raw, labels = self.data.varied(positions, self.epoch, step)
        wanted = self.supervise(raw, step)
        for network in (self.anonymise, self.recover, self._judge_anonymised, self._judge_recovered):
            network.train()
        made = self.anonymise(raw)
        shown = quantised_through(made)
        back = self.recover(shown)
        factor = self._schedule.factor(self.epoch + progress)
        judged = self._teach_discriminators(raw, wanted, made.detach(), shown.detach(), back.detach(), factor)
        for judge in (self._judge_anonymised, self._judge_recovered):
            judge.requires_grad_(False)  # they only judge now
        anonymisation = generator_loss(self._judge_anonymised(raw, made)) + self._l1(wanted, made)
        recovery = generator_loss(self._judge_recovered(shown, back)) + self._l1(raw, back)
        reid = self.reid.loss([raw, shown], labels)
        self._generators.zero_grad(set_to_none=True)
        self.reid.zero_grad()
        (anonymisation + recovery + reid).backward()  # type: ignore[no-untyped-call]
        follow(self._generators, self.config.rate * factor)
        self.reid.step(factor)
        return Losses(anonymisation.item(), recovery.item(), reid.item(), judged)

    @torch.no_grad()
    def supervise(self, raw: Tensor, step: int) -> Tensor:
        """The pictures that anonymised ones are to look like."""
        return self.data.desensitised(raw, self.epoch, step) if self.target is None else self.target(raw)

    def upgrade(self) -> None:
        """From now on, the generator as it is now supervises."""
        self.target = copy.deepcopy(self.anonymise).eval().requires_grad_(False)

    def revert(self) -> None:
        """From now on, desensitised pictures supervise again."""
        self.target = None

    def save(self, path: Path) -> None:
        """Write everything that the next epoch depends on."""
        tensors = pack(self._parts()) | with_prefix("reid", pack(self.reid.parts))
        best = None if self.supervision is None else self.supervision.best
        config = {"epoch": self.epoch, "best": best, "decisions": self.decisions, "run": self._facts}
        save_checkpoint(path, tensors, config, STATE_KIND)

    def restore(self, path: Path, facts: dict[str, Any] | None = None) -> None:
        """Go on from what `save` wrote; refuses the state of another recipe, start or dataset.

        facts: of the run that wrote it, where that is another one; it must be one without upgradation.
        """
        saved = read_state(path, STATE_KIND, self._facts if facts is None else facts)
        with understood(path.name):
            known = read_facts(saved.config, {"best": float | None, "decisions": tuple[dict[str, Any], ...]})
            if self.supervision is not None and facts is None and known["best"] is None:
                raise ConfigError("best is none, but the run upgrades its supervision")
        if of_prefix("target", saved.tensors):
            self.upgrade()
        unpack(self._parts(), saved.tensors, path.name)
        unpack(self.reid.parts, of_prefix("reid", saved.tensors), path.name)
        self.epoch, self.decisions = read_counts(saved, path, {"epoch": 100_000})["epoch"], list(known["decisions"])
        if self.supervision is not None and facts is None:
            self.supervision = Supervision(known["best"], self.target is not None)

    def _parts(self) -> Parts:
        always: Parts = {
            "G_X": self.anonymise, "G_Y": self.recover, "D_Y": self._judge_anonymised, "D_X": self._judge_recovered,
            "generators": self._generators, "discriminators": self._discriminators,
        }  # fmt: skip
        return always if self.target is None else {**always, "target": self.target}

    def _teach_discriminators(
        self, raw: Tensor, wanted: Tensor, made: Tensor, shown: Tensor, back: Tensor, factor: float
    ) -> float:
        """One update of both (Eq. 1 and 4, maximised)."""
        first, second = self._judge_anonymised.requires_grad_(True), self._judge_recovered.requires_grad_(True)
        loss = discriminator_loss(first(raw, wanted), first(raw, made))
        loss = loss + discriminator_loss(second(shown, raw), second(shown, back))
        self._discriminators.zero_grad(set_to_none=True)
        loss.backward()  # type: ignore[no-untyped-call]
        follow(self._discriminators, self.config.rate * factor)
        return loss.item()

    def _l1(self, wanted: Tensor, made: Tensor) -> Tensor:
        return self.config.l1 * _RANGE * (wanted - made).abs().mean()

    def _adam(self, *networks: nn.Module) -> torch.optim.Adam:
        config = self.config
        parameters = [parameter for network in networks for parameter in network.parameters()]
        return torch.optim.Adam(
            parameters, lr=config.rate, betas=(config.beta, 0.999), weight_decay=config.weight_decay
        )
