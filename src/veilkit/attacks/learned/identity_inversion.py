"""Inversion of identities by who has stolen the protection's model: its own expert, and as many lessons as wanted."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import torch
from numpy.typing import NDArray

from veilkit.attacks.adversary import Protector
from veilkit.attacks.base import AttackTarget, Need
from veilkit.attacks.headline import Headline
from veilkit.attacks.learned.embedding_inversion import EmbeddingInversion, Features, train_inverter
from veilkit.attacks.people_split import Division
from veilkit.attacks.pictures import HeldPictures, Pictures
from veilkit.experts import Embedder
from veilkit.training.fitting import Fitted
from veilkit.types import Evidence, Level

DRAWS = 4


class IdentityInversion(EmbeddingInversion):
    """As embedding inversion, by who holds the protection's weights.

    Two things come with them: the expert that read the identity which was replaced, to which the swapper was trained
    to show the new one; and a way to make more lessons. The public pictures can be protected again under keys of the
    attacker's own, so that the network sees several synthetic identities of each, `DRAWS` more than were released.

    Guesses are searched for among the originals in that expert's features. Gates: as of embedding inversion.
    """

    name = "identity_inversion"
    summary = "embedding inversion with the protection's stolen model: its own identity expert, and more lessons"
    level = Level.L3
    headline = Headline(
        "Identities inverted with the stolen model",
        "An attacker who has stolen the protection's model, and learned with its own identity expert how it moves "
        "identities, guesses the original's; by {value} of the guesses{interval} that expert finds the very original",
        undoes=True,
    )
    needs = frozenset({Need.IMAGES, Need.PAIRS, Need.BUDGET, Need.PROTECTOR, Need.IDENTITY})

    def run(self, target: AttackTarget) -> Evidence:
        """Rank-1 of the very original and of the person, and TPR, as the protection's own expert sees them."""
        return super().run(replace(target, recogniser=target.identity))

    def answers(self, target: AttackTarget, division: Division) -> tuple[Features, Fitted]:
        """Guesses (N, D) of the victims' identities, and the training."""
        assert target.budget is not None
        assert target.identity is not None
        assert target.protector is not None
        assert division.victims.protected is not None
        public, expert = division.public, target.identity
        again = protected_again(public.originals, target.protector, expert)
        seen = np.concatenate([public.protected.features(expert), *again])
        truth = np.tile(public.originals.features(expert), (DRAWS + 1, 1))
        people: NDArray[np.int64] = np.tile(public.people, DRAWS + 1)
        learned = train_inverter(seen, truth, people, target.budget, self.config, work=target.work, name=self.name)
        return learned.invert(division.victims.protected.features(expert)), learned.fitted

    def clean_bound(self, target: AttackTarget) -> float | None:
        """Half of the originals that the protection's own expert finds among the originals."""
        return super().clean_bound(replace(target, recogniser=target.identity))


def protected_again(pictures: Pictures, protector: Protector, expert: Embedder) -> Features:
    """(DRAWS, N, D) what an expert sees in pictures protected under other keys, 8-bit as in a release."""
    features = np.empty((DRAWS, len(pictures), expert.dim), dtype=np.float32)
    for part, images in pictures.batches():
        for draw in range(DRAWS):  # all draws of a batch: a protector may make several at once
            made: torch.Tensor = (protector(images, draw).clamp(0, 1) * 255).round() / 255
            features[draw, part] = HeldPictures(made).features(expert)
    return features
