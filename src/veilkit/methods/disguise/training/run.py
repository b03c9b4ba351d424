"""One training run of Disguise: swapper, identity transform and critics; the step of each phase, and the state."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from veilkit.checkpoint import load_weights, save_checkpoint
from veilkit.errors import ConfigError
from veilkit.experts.base import Embedder
from veilkit.methods.disguise.critics import Critics, Judged, critic_loss, fooling_loss, weak_feature_matching
from veilkit.methods.disguise.identity import IdentityEncoder
from veilkit.methods.disguise.identity_transforms import (
    Transform,
    deid_loss,
    kld_loss,
    make_transform,
    transformed,
    unnatural_loss,
)
from veilkit.methods.disguise.swapper import Swapper
from veilkit.methods.disguise.training.config import MOST_STEPS, DisguiseTrainingConfig
from veilkit.methods.disguise.training.data import DisguiseData, jittered
from veilkit.methods.disguise.training.transform import training_noise
from veilkit.rng import Randomness
from veilkit.training.fitting import seeded
from veilkit.training.state import of_prefix, pack_optimizer, read_counts, read_state, unpack_optimizer, with_prefix

STATE_KIND = "disguise-training"
_COMPARED = 256  # identities whose distributions are compared


@dataclass(frozen=True, slots=True)
class Losses:
    """Of one update, without their weights; those that a step does not have are 0. critics: what these minimise."""

    total: float
    identity: float = 0.0
    deid: float = 0.0
    mix: float = 0.0
    utility: float = 0.0
    kld: float = 0.0
    reconstruction: float = 0.0
    gan: float = 0.0
    matching: float = 0.0
    critics: float = 0.0
    unnatural: float = 0.0


class DisguiseRun:
    """A run between two steps, `done` of which are made; the first `swapper_steps` train the swapper alone.

    encoder: h_Z, frozen. utility: experts whose features must stay.
    """

    def __init__(
        self,
        data: DisguiseData,
        config: DisguiseTrainingConfig,
        encoder: IdentityEncoder,
        utility: Sequence[Embedder],
        facts: dict[str, Any],
    ) -> None:
        self.config, self.data, self.encoder = config, data, encoder
        self.done = 0
        self._utility, self._facts = tuple(utility), facts
        self._rng = Randomness.from_seed(config.seed).child("disguise")
        start = self._rng.child("start")
        self.swapper = seeded(lambda: Swapper(config.swapper), start.child("swapper"))
        self.transform = seeded(lambda: make_transform(config.transform), start.child("transform"))
        self.critics = seeded(lambda: Critics(config.critics), start.child("critics"))
        self._swapper_adam = self._adam(self.swapper)
        self._transform_adam = self._adam(self.transform) if any(True for _ in self.transform.parameters()) else None
        self._critics_adam = self._adam(self.critics)

    @property
    def joint(self) -> bool:
        """Whether the next step is of the second phase."""
        return self.done >= self.config.swapper_steps

    def step(self) -> Losses:
        """One update of everything that the phase trains; a step with an even number is one of the same identity."""
        self.swapper.train()
        self.transform.train()
        self.critics.train()
        losses = self._joint_step() if self.joint else self._swapper_step()
        self.done += 1
        return losses

    def _swapper_step(self) -> Losses:
        """SimSwap's: each crop gets the identity of another picture, of the same person in every other step."""
        config, same = self.config, self.done % 2 == 0
        positions = self.data.positions(self.done)
        crops, wanted = (
            self.data.crops(positions),
            self.data.identities[self.data.partners(positions, self.done, same)],
        )
        made = self.swapper(crops, wanted)
        judged = self._teach_critics(crops, made.detach())
        identity = _apart(wanted, self._identified(made))
        gan, matching = self._seen_by_critics(crops, made)
        total = config.id_weight * identity + config.gan_weight * gan + config.matching_weight * matching
        reconstruction = crops.new_zeros(())
        if same:
            reconstruction = F.l1_loss(made, crops)
            total = total + config.reconstruction_weight * reconstruction
        _follow([self._swapper_adam], total)
        return Losses(
            total.item(), identity.item(), reconstruction=reconstruction.item(), gan=gan.item(),
            matching=matching.item(), critics=judged,
        )  # fmt: skip

    def _joint_step(self) -> Losses:
        """Eq. 2 to 4: each crop gets its own identity, and the synthetic one."""
        config, same = self.config, self.done % 2 == 0
        positions = self.data.positions(self.done)
        crops, own = self.data.crops(positions), self.data.identities[positions]
        noise = training_noise(config.transform, len(own), self._rng.child("noise", self.done))
        found = transformed(self.transform, own, noise)
        both = self.swapper(torch.cat([crops, crops]), torch.cat([own, found.vectors]))
        kept, made = both.chunk(2)
        judged = self._teach_critics(crops, made.detach())
        seen_kept, seen_made = self._identified(both).chunk(2)
        identity = _apart(own, seen_kept) + _apart(found.vectors, seen_made)
        deid, mix = deid_loss(own, found.vectors), F.l1_loss(made, kept)
        gan, matching = self._seen_by_critics(crops, made)
        utility = self._utility_loss(crops, made)
        kld = reconstruction = crops.new_zeros(())
        if found.mean is not None and found.log_variance is not None:
            kld = kld_loss(found.mean, found.log_variance)
        if same:
            reconstruction = F.l1_loss(kept, crops)
        unnatural = self._unnatural() if config.natural_weight and self._transform_adam else crops.new_zeros(())
        total = (
            config.id_weight * identity + config.deid_weight * deid + config.mix_weight * mix + utility
            + config.kld_weight * kld + config.reconstruction_weight * reconstruction + config.gan_weight * gan
            + config.matching_weight * matching + config.natural_weight * unnatural
        )  # fmt: skip
        _follow([self._swapper_adam, self._transform_adam], total)
        return Losses(
            total.item(), identity.item(), deid.item(), mix.item(), utility.item(), kld.item(),
            reconstruction.item(), gan.item(), matching.item(), judged, unnatural.item(),
        )  # fmt: skip

    def _identified(self, made: Tensor) -> Tensor:
        """Whom the experts see in what was made, shaken as the configuration says."""
        return self.encoder(jittered(made, self.config.shaken, self._rng.child("shaken", self.done)))

    def _unnatural(self) -> Tensor:
        """Of many training people's synthetic identities, against others' own."""
        identities, node = self.data.identities, self._rng.child("natural", self.done)
        order = node.permutation(len(identities))
        count = min(_COMPARED, len(order) // 2)
        some, others = identities[order[:count]], identities[order[count : 2 * count]]
        noise = training_noise(self.config.transform, count, node.child("noise"))
        return unnatural_loss(transformed(self.transform, some, noise).vectors, others)

    def _utility_loss(self, crops: Tensor, made: Tensor) -> Tensor:
        """Eq. 4, weighted; its L1 is a mean over features, so that a weight means the same for any expert."""
        total = crops.new_zeros(())
        for expert, weight in zip(self._utility, self.config.utility_weights, strict=False):
            with torch.no_grad():
                wanted = expert.embed(crops)
            total = total + weight * F.l1_loss(expert.embed(made), wanted)
        return total

    def _teach_critics(self, real: Tensor, made: Tensor) -> float:
        self.critics.requires_grad_(True)
        loss = critic_loss(self._judged(real), self._judged(made), self.config.gan)
        _follow([self._critics_adam], loss)
        self.critics.requires_grad_(False)  # they only judge now
        return loss.item()

    def _seen_by_critics(self, real: Tensor, made: Tensor) -> tuple[Tensor, Tensor]:
        with torch.no_grad():
            before = self._judged(real)
        after = self._judged(made)
        return fooling_loss(after, self.config.gan), weak_feature_matching(before, after)

    def _judged(self, images: Tensor) -> tuple[Judged, ...]:
        return cast(tuple[Judged, ...], self.critics(images))

    def begin_with(self, swapper: Swapper, transform: Transform) -> None:
        """Take the weights of networks of the same shapes."""
        load_weights(self.swapper, swapper.state_dict(), "the swapper to begin with")
        self.take_transform(transform)

    def take_transform(self, transform: Transform) -> None:
        """Take the weights of a transform of the same shape."""
        load_weights(self.transform, transform.state_dict(), "the transform to begin with")

    def save(self, path: Path) -> None:
        """Write everything that the next step depends on."""
        tensors: dict[str, Tensor] = {}
        for name, network in self._networks().items():
            tensors |= with_prefix(name, network.state_dict())
        for name, adam in self._optimizers().items():
            tensors |= with_prefix(name, pack_optimizer(adam))
        known = {"done": self.done, "swapper_steps": self.config.swapper_steps, "run": self._facts}
        save_checkpoint(path, tensors, known, STATE_KIND)

    def restore(self, path: Path) -> None:
        """Go on from what `save` wrote; refuses the state of another recipe, expert or dataset."""
        saved = read_state(path, STATE_KIND, self._facts)
        counts = read_counts(saved, path, {"done": 3 * MOST_STEPS, "swapper_steps": MOST_STEPS})
        done, before, now = counts["done"], counts["swapper_steps"], self.config.swapper_steps
        if before != now and done > min(before, now):
            raise ConfigError(
                f"{path} is at step {done}, of which {before} trained the swapper alone: swapper_steps cannot become "
                f"{now}. Leave it at {before}, or begin with the finished model (--init) in another work folder"
            )
        for name, network in self._networks().items():
            load_weights(network, of_prefix(name, saved.tensors), path.name)
        for name, adam in self._optimizers().items():
            unpack_optimizer(adam, of_prefix(name, saved.tensors))
        self.done = done

    def _networks(self) -> dict[str, nn.Module]:
        return {"swapper": self.swapper, "transform": self.transform, "critics": self.critics}

    def _optimizers(self) -> dict[str, torch.optim.Adam]:
        known = {
            "swapper adam": self._swapper_adam,
            "transform adam": self._transform_adam,
            "critics adam": self._critics_adam,
        }
        return {name: adam for name, adam in known.items() if adam is not None}

    def _adam(self, network: nn.Module) -> torch.optim.Adam:
        return torch.optim.Adam(network.parameters(), lr=self.config.rate, betas=(0.0, 0.999))


def _apart(wanted: Tensor, seen: Tensor) -> Tensor:
    """1 - cos, the mean over the batch: one term of L_id (Eq. 3)."""
    return 1 - F.cosine_similarity(wanted, seen).mean()


def _follow(optimizers: Sequence[torch.optim.Adam | None], loss: Tensor) -> None:
    held = [optimizer for optimizer in optimizers if optimizer is not None]
    for optimizer in held:
        optimizer.zero_grad(set_to_none=True)
    loss.backward()  # type: ignore[no-untyped-call]
    for optimizer in held:
        optimizer.step()
