"""The decoder of a reversible protection, in the hands of somebody who stole it (L3)."""

from __future__ import annotations

import torch
from torch import Tensor

from veilkit.attacks.base import Attack, AttackTarget, Need
from veilkit.attacks.headline import undoing_headline
from veilkit.attacks.people_split import attack_size, pixels
from veilkit.attacks.pictures import Pictures, resized
from veilkit.attacks.recovered import mean_of, own_bound, score_recovered
from veilkit.attacks.target import Undo, given
from veilkit.types import Evidence, Level, Reason, ReasonCode


class StolenDecoder(Attack):
    """Gives every released picture to the decoder that was trained with the protection, as its owner would.

    The most that can be had by that means: what a decoder learned without it recovers is to be compared with this.
    Scored is what came out, as the 8-bit pictures that the owner gets.

    Gates: a decoder of pictures that nobody protected changes nothing, and must leave what is found in the originals;
    the decoder itself must find nothing in noise. Nothing is learned, so no loss has to level off. The mean image to
    beat is that of the public pictures, where there are any, or else of the originals themselves.
    """

    name = "stolen_decoder"
    summary = "recovers the originals with the protection's own secret decoder"
    level = Level.L3
    headline = undoing_headline("Pictures decoded", "who stole the secret decoder", "recovers the originals with it")
    needs = frozenset({Need.IMAGES, Need.PAIRS, Need.EXPERT, Need.DECODER})

    def run(self, target: AttackTarget) -> Evidence:
        """Rank-1 of the very original, of the person, and similarity on the fixed and on the paper's scale."""
        originals, size = given(target.originals), attack_size(target)
        if len(originals) < 2:
            return self.not_applicable(Reason(ReasonCode.ONE_PICTURE, "a single picture is only itself"))
        public = originals if target.pairs is None else target.pairs.originals
        answers = undone(given(target.protected), given(target.decoder), size)
        found = score_recovered(target, answers, mean_of(pixels(public, size), size))
        details = {**found.details, "pictures attacked": len(answers), "size": list(size)}
        return Evidence(self.name, self.level, found.scores, invalid=found.invalid, details=details)

    def clean_bound(self, target: AttackTarget) -> float | None:
        """The share of originals that the recogniser finds among the originals."""
        return own_bound(target)


def undone(pictures: Pictures, decoder: Undo, size: tuple[int, int]) -> Tensor:
    """What a decoder makes of pictures, each in its own size, rounded to 8 bit; then brought to one size.

    (N, 3, H, W) in [0, 1].
    """
    answers = torch.empty(len(pictures), 3, *size)
    for part, images in pictures.batches():
        rounded = (decoder(images).clamp(0, 1) * 255).round() / 255
        answers[part] = resized(rounded, size)
    return answers
