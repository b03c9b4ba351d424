"""Recovery: a network that learned from other people's pairs to undo the protection (L1)."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from veilkit.attacks.base import AttackTarget, Need
from veilkit.attacks.headline import Cost, undoing_headline
from veilkit.attacks.learned.learning import Learning, LearningAttack, Scale, digest, learn, unfinished
from veilkit.attacks.people_split import Division, divide, pixels, victims_of
from veilkit.attacks.pictures import Features, Pictures
from veilkit.attacks.recovered import RecoveredPictures, mean_of, score_recovered
from veilkit.attacks.target import Budget, given
from veilkit.experts import Embedder
from veilkit.networks.unet import UNet, UNetConfig
from veilkit.rng import Randomness
from veilkit.training.fitting import Fitted, seeded
from veilkit.types import Evidence, Level

_CHUNK = 64


@dataclass(frozen=True, slots=True)
class RecoveryConfig:
    """PixelFade's attacker (Section 4.1.2): a U-Net, L1, Adam 1e-3. Its width is one that a CPU can train."""

    width: int = 16
    depth: int = 4
    learning: Learning = field(default_factory=Learning)


class Recovery(LearningAttack):
    """Trains a U-Net by L1 on the pairs (original, protected) of some people and recovers the pictures of others.

    The adversary has pairs of other people, or holds the originals of some people in the release. It has neither key
    nor expert. Scored is whether an independent recogniser finds the very original, and the person,
    from the recovered picture, and how near the picture is to the original; the mean image stands beside it.

    Gates besides the usual two: its loss has levelled off, and it is no worse than the mean image (half a decibel is
    forgiven, for where nothing can be learned an L1 loss ends at the median).
    """

    name = "recovery"
    summary = "a network that learned from other people's pairs recovers the originals"
    level = Level.L1
    headline = undoing_headline(
        "Pictures recovered", "whose network learned from other people's pairs", "recovers the originals"
    )
    cost = Cost.TRAINING
    clean_share = 0.9  # a trained network copies what is not protected
    needs = frozenset({Need.IMAGES, Need.PAIRS, Need.EXPERT, Need.BUDGET})

    def __init__(self, config: RecoveryConfig | None = None) -> None:
        self.config = config or RecoveryConfig()

    def run(self, target: AttackTarget) -> Evidence:
        """Rank-1 of the very original, of the person, and similarity on the fixed and on the paper's scale."""
        division = divide(target)
        if division.missing:
            return self.not_applicable(*division.missing)
        learner, fitted = self._learned(target, division)
        answers = learner.recover(given(division.victims.protected))
        found = score_recovered(division.victims, answers, mean_of(learner.originals, division.size))
        details = {**division.details, **found.details, "updates": len(fitted.losses), "stopped early": fitted.early}
        if surrogate := self.surrogate(target):
            details["surrogate"] = surrogate.name
        invalid = unfinished(fitted, found.scores[0].value, self.clean_bound(target))
        return Evidence(self.name, self.level, found.scores, invalid=(*invalid, *found.invalid), details=details)

    def surrogate(self, target: AttackTarget) -> Embedder | None:
        """The recogniser whose features of the protected picture the network sees too; None here."""
        return None

    def recover(self, target: AttackTarget, only: NDArray[np.int64] | None = None) -> tuple[AttackTarget, Tensor]:
        """Victims and what the trained network makes of them, (N, 3, H, W) in [0, 1]; of some of them with `only`.

        The training is found again in the target's work folder, where `run` left it.
        """
        division = divide(target)
        learner, _ = self._learned(target, division)
        victims = division.victims if only is None else division.victims.only(only)
        return victims, learner.recover(given(victims.protected))

    def recovered_pictures(self, target: AttackTarget, count: int) -> RecoveredPictures:
        """Evenly chosen victims before, after, and recovered."""
        originals = given(victims_of(target).originals)
        chosen = np.unique(np.linspace(0, len(originals) - 1, count).astype(np.int64))
        victims, answers = self.recover(target, chosen)
        size = (answers.shape[2], answers.shape[3])
        before, after = (pixels(given(each), size) for each in (victims.originals, victims.protected))
        return RecoveredPictures(before, after, (answers * 255).round().byte())

    def _learned(self, target: AttackTarget, division: Division) -> tuple[Recoverer, Fitted]:
        learner = Recoverer(division, given(target.budget), self.config, self.surrogate(target))
        return learner, learner.learn(target.work, self.name)


class RecoveryWithFeatures(Recovery):
    """As `recovery`, and the network also sees the features of the protected picture under a surrogate expert.

    A protection that keeps features for one expert often keeps them for others too; what pixels no longer show may so
    still be found. The surrogate is any recogniser that the adversary has, by default the independent one that also
    judges; it is never trained on the protection.
    """

    name = "recovery_features"
    summary = "as recovery, with the features that a recogniser finds in the protected picture"
    headline = undoing_headline(
        "Pictures recovered with features",
        "whose network learned from other people's pairs and sees a recogniser's features",
        "recovers the originals",
    )

    def __init__(self, config: RecoveryConfig | None = None, surrogate: Embedder | None = None) -> None:
        super().__init__(config)
        self._surrogate = surrogate

    def surrogate(self, target: AttackTarget) -> Embedder | None:
        """The given one, or the judge."""
        return self._surrogate or target.recogniser


class Recoverer:
    """A recovery network and what teaches it."""

    def __init__(
        self, division: Division, budget: Budget, config: RecoveryConfig, surrogate: Embedder | None
    ) -> None:
        public = division.public
        self._size, self._budget, self._config, self._surrogate = division.size, budget, config, surrogate
        self.originals = pixels(public.originals, division.size)
        self._protected = pixels(public.protected, division.size)
        self._people = public.people
        seen = None if surrogate is None else public.protected.features(surrogate)
        self._scale = None if seen is None else Scale(seen.mean(axis=0), seen.std() + 1e-12)
        self._seen = self._standard(seen)
        network = UNetConfig(config.width, config.depth, features=0 if seen is None else seen.shape[1])
        self.network = seeded(lambda: UNet(network), Randomness.from_seed(budget.seed).child("recovery"))

    def learn(self, work: Path | None, name: str) -> Fitted:
        """Fit the network to the public pairs, by L1."""
        parts = [self.originals, self._protected, *([] if self._seen is None else [self._seen])]
        facts = {"data": digest(*parts), "network": asdict(self.network.config)}
        return learn(
            self.network, self._loss, self._people, self._config.learning, self._budget, name=name, facts=facts,
            work=work,
        )  # fmt: skip

    @torch.no_grad()
    def recover(self, pictures: Pictures) -> Tensor:
        """Answers (N, 3, H, W) in [0, 1] to protected pictures."""
        seen = self._standard(None if self._surrogate is None else pictures.features(self._surrogate))
        images = pixels(pictures, self._size)
        found = [
            self.network(_unit(images[at : at + _CHUNK]), None if seen is None else seen[at : at + _CHUNK])
            for at in range(0, len(images), _CHUNK)
        ]
        return torch.cat(found)

    def _loss(self, at: NDArray[np.int64]) -> Tensor:
        answer = self.network(_unit(self._protected[at]), None if self._seen is None else self._seen[at])
        error: Tensor = (answer - _unit(self.originals[at])).abs().mean()
        return error

    def _standard(self, features: Features | None) -> Tensor | None:
        """On the scale of the public people's features."""
        return None if features is None or self._scale is None else self._scale.standardised(features)


def _unit(images: Tensor) -> Tensor:
    return images.float() / 255
