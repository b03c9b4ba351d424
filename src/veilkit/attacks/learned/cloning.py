"""Expert cloning (L2): a network learns to see in protected pictures what it sees in their originals."""

from __future__ import annotations

import copy
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import cast

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from veilkit.attacks.base import AttackTarget, Need
from veilkit.attacks.headline import Cost, Headline
from veilkit.attacks.learned.learning import Learning, LearningAttack, digest, learn, unfinished
from veilkit.attacks.learned.retrained import start_facts
from veilkit.attacks.people_split import Division, divide, pixels, unsearchable, victims_of
from veilkit.attacks.person_search import found_among
from veilkit.attacks.pictures import Features
from veilkit.attacks.quick.choices import BLIND, PAIRED, same_person_score, unit
from veilkit.attacks.target import Budget, Indices, given
from veilkit.checkpoint import load_checkpoint
from veilkit.experts.names import packaged_weights
from veilkit.networks.backbones import BACKBONE_KIND
from veilkit.networks.reid import REID_KIND, ReidNetwork, ReidNetworkConfig, channels_last, load_reid
from veilkit.rng import Randomness
from veilkit.training.fitting import Fitted, seeded
from veilkit.training.reid_learner import start_from
from veilkit.types import Evidence, Level

_CLEAN = 0.8  # of the way from blind guessing to the judge's paired choices among the originals
_CHUNK = 64
_LEAST_SIDE = 16  # pixels: what a Re-ID network takes
_AMONG = "protected to protected "


@dataclass(frozen=True, slots=True)
class CloningConfig:
    """temperature: of the cosines that are contrasted. company: batches are so many times the budget's, and updates
    so many times fewer, for a contrast needs others to be told from. starts: networks to begin from, in place of the
    target's, or else of the one that comes with veilkit; several share the updates, and put their features in a row.
    """

    temperature: float = 0.1
    company: int = 4
    learning: Learning = field(default_factory=lambda: Learning(rate=3e-4, watched=0.15))
    starts: tuple[Path, ...] = ()


@dataclass(frozen=True, slots=True, eq=False)
class Clone:
    """A network as it was, for originals, and what it became, for protected pictures. name: what it started from."""

    name: str
    before: ReidNetwork
    after: ReidNetwork
    fitted: Fitted

    def features(self, originals: Tensor, protected: Tensor) -> tuple[Features, Features]:
        """(N, D) of pictures uint8 (N, 3, H, W), each set about its own mean, of length one."""
        return _centred(_embedded(self.before, originals)), _centred(_embedded(self.after, protected))


class ExpertCloning(LearningAttack):
    """Starts from networks of one family or several, runs other people's pictures through the protection, and trains
    each to give a protected picture the features that it gave the original, far from those of other people.

    A protection that keeps an expert's features is read so without that expert, the better the nearer the family.
    "paired choice", "rank-1": raw queries in the protected gallery. "protected to protected": among the release.

    Gates: where nothing is protected its paired choices must go eight tenths of the judge's way.
    """

    name = "cloning"
    summary = "trains networks to see in protected pictures what they saw in the originals, on other people's pairs"
    level = Level.L2
    headline = Headline(
        "People found by a cloned expert",
        "A network that learned, on other people's pictures, to see protected ones as their originals finds the "
        "person of a raw picture in the release {value} of the time{interval}",
    )
    cost = Cost.RECOGNISER
    uses_weights = True
    needs = frozenset({Need.IMAGES, Need.PAIRS, Need.IDENTITIES, Need.EXPERT, Need.BUDGET})

    def __init__(self, config: CloningConfig | None = None) -> None:
        self.config = config or CloningConfig()

    @classmethod
    def weights_facts(cls, start: Path | None) -> dict[str, str]:
        """The SHA-256 of the weights; raises VeilkitError for a file that a recogniser cannot start from."""
        return start_facts(start)

    def run(self, target: AttackTarget) -> Evidence:
        """Paired choices, Rank-k, mAP and mINP, raw to protected; the same, protected to protected."""
        division = divide(target)
        victims = division.victims
        if missing := division.missing or unsearchable(victims):
            return self.not_applicable(*missing)
        clones = self.clones(target, division)
        pictures = [pixels(given(each), division.size) for each in (victims.originals, victims.protected)]
        sides = zip(*(clone.features(*pictures) for clone in clones), strict=True)
        raw, released = (np.concatenate(side, axis=1) for side in sides)
        chance = {PAIRED: BLIND, **given(victims.search).chance()}
        first = same_person_score(victims, raw, released)
        scores = [first, *found_among(victims, raw, released, chance)]
        among = (same_person_score(victims, released, released), *found_among(victims, released, released, chance))
        scores += [replace(each, metric=_AMONG + each.metric) for each in among]
        chance |= {_AMONG + metric: value for metric, value in chance.items()}
        details = {
            **division.details,
            "chance": chance,
            "families": [clone.name for clone in clones],
            "updates": [len(clone.fitted.losses) for clone in clones],
        }
        enough = _possible(victims)
        cut = [reason for each in clones for reason in unfinished(each.fitted, first.value, enough)]
        invalid = tuple(cut) if len(cut) == len(clones) else ()
        return Evidence(self.name, self.level, tuple(scores), invalid=invalid, details=details)

    def clones(self, target: AttackTarget, division: Division) -> list[Clone]:
        """One of each family; kept in the target's work folder."""
        public, starts = division.public, self.starts(target, division)
        raw, shown = (pixels(each, division.size) for each in (public.originals, public.protected))
        share = replace(given(target.budget), updates=max(1, given(target.budget).updates // len(starts)))
        return [
            self._cloned(name, network, (raw, shown), public.people, share, target.work)
            for name, network in starts.items()
        ]

    def starts(self, target: AttackTarget, division: Division) -> dict[str, ReidNetwork]:
        """Networks to start from, by what they are called."""
        if files := self.config.starts or ((target.start,) if target.start else ()):
            return {file.stem: opened(file, division.size) for file in files}
        with packaged_weights("people", "people") as (path, _):
            return {"people": load_reid(path)}

    def clean_bound(self, target: AttackTarget) -> float | None:
        """Eight tenths of the judge's way from blind guessing, among the originals."""
        possible = _possible(victims_of(target))
        return None if possible is None else BLIND + _CLEAN * (possible - BLIND)

    def _cloned(
        self, name: str, before: ReidNetwork, pictures: tuple[Tensor, Tensor], people: Indices, budget: Budget,
        work: Path | None,
    ) -> Clone:  # fmt: skip
        raw, shown = pictures
        config, after = self.config, copy.deepcopy(before)
        seen = torch.from_numpy(_embedded(before, raw))
        centre = seen.mean(0)
        wanted, codes = F.normalize(seen - centre), torch.from_numpy(people)

        def loss(at: Indices) -> Tensor:
            found = F.normalize(after.embed(shown[at].float() / 255) - centre)
            return contrast(found, wanted[at], codes[at], config.temperature)

        larger = replace(
            budget, updates=max(1, budget.updates // config.company), batch=config.company * budget.batch
        )
        facts = {"data": digest(shown, wanted), "contrast": config.temperature}
        fitted = learn(after, loss, people, config.learning, larger, name=self.name, facts=facts, work=work)
        return Clone(name, before, after, fitted)


def contrast(found: Tensor, wanted: Tensor, people: Tensor, temperature: float) -> Tensor:
    """Cross-entropy of unit features (N, D) to those that they should be near, of the same person; both ways."""
    logits = found @ wanted.T / temperature
    same = (people[:, None] == people[None, :]).float()
    right = same / same.sum(1, keepdim=True)
    return (F.cross_entropy(logits, right) + F.cross_entropy(logits.T, right)) / 2


def opened(file: Path, size: tuple[int, int]) -> ReidNetwork:
    """A Re-ID network of a file; a backbone gets pooling alone, at the size of the pictures."""
    stored = load_checkpoint(file, (BACKBONE_KIND, REID_KIND))
    if stored.kind == REID_KIND:
        return load_reid(file)
    backbone = str(stored.config.get("backbone"))
    height, width = (max(_LEAST_SIDE, side) for side in size)
    shape = ReidNetworkConfig(backbone, (height, width), feature="pooled")
    network = seeded(lambda: ReidNetwork(shape), Randomness.from_seed(0).child("cloning", "start"))
    start_from(network, file, backbone)
    return channels_last(network.eval())


def _possible(victims: AttackTarget) -> float | None:
    """The share of paired choices that the judge makes rightly among the originals."""
    if victims.search is None or victims.originals is None or victims.recogniser is None:
        return None
    raw = victims.original_features()
    return same_person_score(victims, raw, raw).value


@torch.no_grad()
def _embedded(network: ReidNetwork, pictures: Tensor) -> Features:
    parts = [network.embed(part.float() / 255) for part in torch.split(pictures, _CHUNK)]
    return cast(Features, torch.cat(parts).numpy())


def _centred(features: Features) -> Features:
    return unit(features - features.mean(axis=0))
