"""Averaging: several protections of one picture, under fresh keys, taken together (L1)."""

from __future__ import annotations

from dataclasses import replace

import torch
from torch import Tensor

from veilkit.attacks.base import Attack, AttackTarget, Need
from veilkit.attacks.headline import Headline
from veilkit.attacks.people_split import attack_size, pixels, some_people
from veilkit.attacks.pictures import HeldPictures, Pictures, resized
from veilkit.attacks.recovered import mean_of, own_bound, recognised, score_recovered
from veilkit.attacks.target import Protector, given
from veilkit.errors import ConfigError
from veilkit.progress import Progress
from veilkit.types import Evidence, Level, Reason, ReasonCode, Score

COUNTS = (1, 4, 16, 64)
_BATCH = 16


class Averaging(Attack):
    """Averages 1, 4, 16 and 64 protections of each picture: independent noise falls by the root of their number.

    Honest about what it needs: somebody must have protected the *same* original as often, each time under a fresh
    key, and the adversary must know which pictures belong together. That happens where a set is released again under
    another key, or where the adversary can submit pictures it holds. One release under one key has one protection of
    each picture, and the same key gives the same bytes: there is nothing to average.

    An average of noise is pale. "stretched" is recognition after all averages together were given the brightness and
    contrast that pictures of people have (two numbers, taken from the originals).
    """

    name = "averaging"
    summary = "averages several protections of one picture, made under fresh keys"
    level = Level.L1
    headline = Headline(
        "Protections averaged",
        "An attacker who gets several protections of one picture averages them; in {value} of them{interval} "
        "{judge} then finds the very original",
        metric="",
        undoes=True,
    )
    needs = frozenset({Need.IMAGES, Need.PAIRS, Need.EXPERT, Need.PROTECTOR, Need.BUDGET})

    def __init__(self, counts: tuple[int, ...] = COUNTS) -> None:
        if not counts or min(counts) < 1 or list(counts) != sorted(set(counts)):
            raise ConfigError(f"counts must be positive and rise, but got {counts}")
        self._counts = counts

    def run(self, target: AttackTarget) -> Evidence:
        """Recognition and similarity for each number of protections, the largest first."""
        part = self._part(target)
        originals, recogniser = given(part.originals), given(part.recogniser)
        if len(originals) < 2:
            return self.not_applicable(Reason(ReasonCode.ONE_PICTURE, "a single picture is only itself"))
        size = attack_size(part)
        averaged = averages(originals, given(part.protector), self._counts, size)
        mean, raw = mean_of(pixels(given(part.protected), size), size), pixels(originals, size).float() / 255
        scores: list[Score] = []
        details: dict[str, object] = {"pictures attacked": len(originals), "size": list(size)}
        chance: dict[str, float] = {}
        for count in reversed(self._counts):
            found = score_recovered(part, averaged[count], mean)
            bright = HeldPictures(stretched(averaged[count], raw)).features(recogniser)
            more, more_chance, _ = recognised(part, bright, None)
            known = found.details["chance"]
            assert isinstance(known, dict)
            for prefix, some, by_metric in (("", found.scores, known), ("stretched ", more, more_chance)):
                scores += [replace(each, metric=_named(prefix + each.metric, count)) for each in some]
                chance |= {_named(prefix + metric, count): value for metric, value in by_metric.items()}
            details |= {"as released": found.details["as released"], "recogniser": found.details["recogniser"]}
        return Evidence(self.name, self.level, tuple(scores), details={**details, "chance": chance})

    def clean_bound(self, target: AttackTarget) -> float | None:
        """The share of originals that the recogniser finds among the originals."""
        return own_bound(self._part(target))

    def _part(self, target: AttackTarget) -> AttackTarget:
        budget = given(target.budget)
        most = min(budget.pictures, budget.updates * budget.batch // max(self._counts))
        return target.only(some_people(target.clusters, max(2, most), target.rng.child(self.name)))


def averages(
    pictures: Pictures, protector: Protector, counts: tuple[int, ...], size: tuple[int, int]
) -> dict[int, Tensor]:
    """For each count the mean (N, 3, H, W) of so many protections of each picture, which are 8-bit, at a size.

    The draws of a small count are the first of a larger one. Draws are numbered from 0.
    """
    found = {count: torch.empty(len(pictures), 3, *size) for count in counts}
    with Progress(len(pictures) * max(counts), "protecting again") as progress:
        for start in range(0, len(pictures), _BATCH):
            for part, images in pictures.batches(range(start, min(start + _BATCH, len(pictures)))):
                total = torch.zeros(images.shape, dtype=torch.float64)
                for draw in range(max(counts)):
                    total += (protector(images, draw).clamp(0, 1) * 255).round().double()
                    if draw + 1 in found:
                        found[draw + 1][part] = resized((total / (255 * (draw + 1))).float(), size)
                    progress.advance(len(part))
    return found


def stretched(images: Tensor, like: Tensor) -> Tensor:
    """All images together with the mean and the standard deviation of others, (N, 3, H, W), cut to [0, 1]."""
    spread = images.std()
    factor = like.std() / spread if spread > 0 else images.new_zeros(())
    return ((images - images.mean()) * factor + like.mean()).clamp(0, 1)


def _named(metric: str, count: int) -> str:
    return f"{metric}, {count} averaged"
