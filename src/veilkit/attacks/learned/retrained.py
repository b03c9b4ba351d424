"""A recogniser trained on protected pictures of other people (L2)."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TypeAlias

import numpy as np
import torch
from numpy.typing import NDArray
from PIL import Image
from torch import Tensor

from veilkit.attacks.base import FROM_SCRATCH, Attack, AttackTarget, Need
from veilkit.attacks.headline import Cost, Headline
from veilkit.attacks.learned.learning import digest, state_file
from veilkit.attacks.people_split import FEWEST, divide, pixels, unsearchable, victims_of
from veilkit.attacks.person_search import found_among, rank_one_on_originals
from veilkit.attacks.target import Budget, given
from veilkit.checkpoint import load_checkpoint
from veilkit.datasets.augment import AugmentConfig
from veilkit.datasets.sampler import PKSampler
from veilkit.experts import Embedder
from veilkit.experts.names import file_sha256
from veilkit.experts.torch_embedder import TorchEmbedder
from veilkit.networks.backbones import BACKBONE_KIND
from veilkit.networks.reid import REID_KIND, ReidNetwork
from veilkit.rng import Randomness
from veilkit.training.loop import Decay
from veilkit.training.reid import train_reid
from veilkit.training.reid_config import ReidConfig
from veilkit.training.reid_learner import network_config, start_from
from veilkit.types import Evidence, Level, Reason, ReasonCode, Record, Split

_CLEAN = 0.8  # of what the independent recogniser finds among the originals, where it was itself trained for that
_IMAGES = 4
_LEAST_SIDE = 16  # pixels: what a Re-ID network takes
_NAMED = 12  # hexadecimal digits of a digest that name a file

RECIPE = ReidConfig(
    backbone="mobilenetv2", rate=8e-4, warmup=0, decay=Decay.COSINE, cosine=20.0, margin=0.1, centre=0.0,
    average=0.99, feature="pooled", augment=AugmentConfig(erase=0.25),
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class RetrainedConfig:
    """recipe: of the training; its size, epochs, batch and seed are the target's and the budget's.

    init: a backbone file or a whole Re-ID network to start from, in place of the target's `start`. raw: whether the
    same people's originals are trained on too, as the adversary who holds pairs can; that helps to find protected
    pictures by raw ones.
    """

    recipe: ReidConfig = RECIPE
    init: Path | None = None
    raw: bool = False


Trainer: TypeAlias = Callable[[list[Tensor], list[NDArray[np.int64]], RetrainedConfig, Budget, Path | None], Embedder]
"""Makes a recogniser of pictures, uint8 (N, 3, H, W), and their people; kept in the folder, where there is one."""


class Retrained(Attack):
    """Trains a recogniser on other people's protected pictures, and searches for the victims with it.

    "rank-1": protected queries in the protected gallery. "raw to protected": raw queries in the protected gallery.

    Gates: trained and tested where nothing is protected, it must find eight tenths of what the independent recogniser
    does there. A small budget will not do: an attacker who cannot tell people apart proves nothing.
    """

    name = "retrained"
    summary = "finds people in the release with a recogniser that was trained on other people's protected pictures"
    level = Level.L2
    headline = Headline(
        "People found by a retrained recogniser",
        "A recogniser that was trained on other people's protected pictures finds the right person {value} of the "
        "time{interval}",
    )
    cost = Cost.RECOGNISER
    uses_weights = True
    needs = frozenset({Need.IMAGES, Need.PAIRS, Need.IDENTITIES, Need.EXPERT, Need.BUDGET})

    def __init__(self, config: RetrainedConfig | None = None, train: Trainer | None = None) -> None:
        self.config = config or RetrainedConfig()
        self._train = train or train_on

    @classmethod
    def weights_facts(cls, start: Path | None) -> dict[str, str]:
        """The SHA-256 of the weights; raises VeilkitError for a file that a recogniser cannot start from."""
        return start_facts(start)

    def run(self, target: AttackTarget) -> Evidence:
        """Rank-k, mAP and mINP, protected to protected; the same, raw to protected."""
        division = divide(target)
        codes, counts = np.unique(division.public.people, return_counts=True)
        seen_twice = codes[counts >= 2]
        if division.missing:
            return self.not_applicable(*division.missing)
        if len(seen_twice) < FEWEST:
            text = f"{len(seen_twice)} public people have two pictures; at least {FEWEST} are needed"
            return self.not_applicable(Reason(ReasonCode.TOO_FEW_PEOPLE, text))
        victims = division.victims
        if missing := unsearchable(victims):
            return self.not_applicable(*missing)
        public = division.public.only(np.flatnonzero(np.isin(division.public.people, seen_twice)))
        images, people = [pixels(public.protected, division.size)], [public.people]
        if self.config.raw:
            images, people = [*images, pixels(public.originals, division.size)], [*people, public.people]
        config = _started(self.config, target.start)
        recogniser = self._train(images, people, config, given(target.budget), target.work)
        protected, raw = (given(each).features(recogniser) for each in (victims.protected, victims.originals))
        chance = given(victims.search).chance()
        scores = list(found_among(victims, protected, protected, chance))
        scores += [replace(each, metric=f"raw to protected {each.metric}") for each in
                   found_among(victims, raw, protected, chance, "raw queries")]  # fmt: skip
        chance |= {f"raw to protected {metric}": value for metric, value in chance.items()}
        details = {
            **division.details,
            "chance": chance,
            "trained on originals too": config.raw,
            "started from": FROM_SCRATCH if config.init is None else file_sha256(config.init)[:_NAMED],
        }
        return Evidence(self.name, self.level, tuple(scores), details=details)

    def clean_bound(self, target: AttackTarget) -> float | None:
        """Eight tenths of the independent recogniser's Rank-1 on the originals."""
        bound = rank_one_on_originals(victims_of(target))
        return None if bound is None else _CLEAN * bound


def start_facts(file: Path | None) -> dict[str, str]:
    """What results depend on where attackers start from a file: its SHA-256. Nothing where from scratch.

    Raises VeilkitError for a file that a recogniser cannot start from.
    """
    if file is None:
        return {}
    recipe = _started(RetrainedConfig(), file).recipe
    with torch.random.fork_rng():  # torch's layers start from its global generator
        start_from(ReidNetwork(network_config(recipe, identities=0)), file, recipe.backbone)
    return {"start": file_sha256(file)}


def _started(config: RetrainedConfig, start: Path | None) -> RetrainedConfig:
    """The same with what it starts from, if anything, and with the backbone of that."""
    init = config.init or start
    if init is None:
        return config
    backbone = load_checkpoint(init, (BACKBONE_KIND, REID_KIND)).config.get("backbone")
    return replace(config, init=init, recipe=replace(config.recipe, backbone=str(backbone)))


def train_on(
    images: list[Tensor],
    people: list[NDArray[np.int64]],
    config: RetrainedConfig,
    budget: Budget,
    work: Path | None = None,
) -> Embedder:
    """A recogniser trained on pictures, uint8 (N, 3, H, W), of people with these codes; kept in the work folder."""
    labels, name = np.concatenate(people), Retrained.name
    recipe = _recipe(config.recipe, labels, (int(images[0].shape[2]), int(images[0].shape[3])), budget)
    facts = {
        "attack": name,
        "recipe": asdict(recipe),
        "init": None if config.init is None else file_sha256(config.init),
        "data": digest(*images, labels),
    }
    with tempfile.TemporaryDirectory(prefix="veilkit-") as scratch:
        # Training reads files. They are of people in the release, so they do not stay, not even in the work folder.
        state = state_file(work, name, facts) or Path(scratch) / "recogniser.safetensors"
        if not state.is_file():
            split = _written(Path(scratch) / "pictures", images, labels)
            train_reid(split, recipe, state, work_dir=state.with_suffix(".training"), init=config.init)
        return TorchEmbedder.load(state, name=f"{name} recogniser")


def _recipe(recipe: ReidConfig, labels: NDArray[np.int64], size: tuple[int, int], budget: Budget) -> ReidConfig:
    """The recipe at this size, with batches that the people can fill and as many epochs as the updates allow."""
    identities = min(max(2, budget.batch // _IMAGES), len(np.unique(labels)))
    codes = tuple(np.unique(labels, return_inverse=True)[1].ravel().tolist())
    steps = len(PKSampler(codes, identities, _IMAGES).epoch(Randomness.from_seed(budget.seed), 0))
    height, width = (max(_LEAST_SIDE, side) for side in size)
    return replace(
        recipe,
        size=(height, width),
        stored=None,
        small_size=None,
        small_share=0.0,
        projected=0,
        identities=identities,
        images=_IMAGES,
        epochs=max(1, budget.updates // steps),
        warmup=0,
        seed=budget.seed,
    )


def _written(root: Path, images: list[Tensor], labels: NDArray[np.int64]) -> Split:
    root.mkdir(parents=True)
    records = []
    for number, image in enumerate(picture for part in images for picture in part):
        path = f"{number:06d}.png"
        Image.fromarray(image.permute(1, 2, 0).contiguous().numpy()).save(root / path)
        records.append(Record(path, f"{labels[number]}"))
    return Split("public people", root, tuple(records))
