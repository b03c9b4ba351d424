"""Small targets of attacks, in memory."""

from __future__ import annotations

import zlib
from functools import cache

import numpy as np
import torch

from tests.attacks.learners import TINY, drawn, learned_target, learned_target_of
from tests.audit.folders import person
from veilkit.attacks import ATTACKS, AttackTarget, Budget, Need
from veilkit.attacks.pictures import HeldPictures, NoisePictures, Pictures
from veilkit.attacks.search import plan_search
from veilkit.experts import Embedder, load_expert
from veilkit.experts.base import ExpertInfo
from veilkit.methods.base import Method
from veilkit.methods.mixing import MixUp, MixUpConfig, Patches, PatchesConfig
from veilkit.rng import Randomness
from veilkit.synthetic.people import render_person
from veilkit.types import ImageBatch

PEOPLE, SHOTS = 12, 3


def originals() -> HeldPictures:
    pixels = [person(identity, shot) for identity in range(PEOPLE) for shot in range(SHOTS)]
    return HeldPictures([torch.from_numpy(p).permute(2, 0, 1).float() / 255 for p in pixels])


def target(release: Pictures | None = None, **changes: object) -> AttackTarget:
    """Twelve people three times each; the release is the originals themselves unless given."""
    raw = originals()
    names = [f"p{index // SHOTS}" for index in range(len(raw))]
    search, _ = plan_search(names, [None] * len(raw), range(len(raw)), range(len(raw)))
    values: dict[str, object] = {
        "rng": Randomness.from_seed(0),
        "protected": raw if release is None else release,
        "originals": raw,
        "people": np.arange(len(raw)) // SHOTS,
        "search": search,
        "recogniser": load_expert("histogram"),
        "decoder": lambda images: images,
        "neutral": lambda images: images,
    }
    return AttackTarget(**{**values, **changes})  # type: ignore[arg-type]


def noise() -> NoisePictures:
    return NoisePictures(originals(), Randomness.from_seed(5))


class Blind(Embedder):
    """A recogniser whose answers have nothing to do with who is in the picture: hashes of its bytes."""

    @property
    def info(self) -> ExpertInfo:
        return ExpertInfo("blind", "embedder", 8, "0" * 64, False, "none", "", "file")

    def embed(self, images: torch.Tensor) -> torch.Tensor:
        seeds = [zlib.crc32(image.numpy().tobytes()) for image in images]
        return torch.stack([torch.randn(8, generator=torch.Generator().manual_seed(seed)) for seed in seeds])


@cache
def walkers() -> torch.Tensor:
    """Twelve generated people by two cameras: pictures with seams and structure of their own, (24, 3, 96, 48)."""
    drawn = [render_person(9, index // 2, 1 + index % 2, 0, height=96, width=48) for index in range(24)]
    return torch.from_numpy(np.stack(drawn)).permute(0, 3, 1, 2).float() / 255


def mixed(method: Method, images: torch.Tensor, size: int, seed: int = 3) -> tuple[torch.Tensor, list[list[int]]]:
    """Images protected in groups of `size`, drawn at random, and rounded to 8 bit; and the groups."""
    rng = Randomness.from_seed(seed)
    order = rng.permutation(len(images)).tolist()
    groups = [order[start : start + size] for start in range(0, len(order), size)]
    release = images.clone()
    for group in groups:
        batch = ImageBatch(images[group], tuple(map(str, group)))
        release[group] = method.protect(batch, rng=rng).images
    return (release * 255).round() / 255, groups


def dealt(places: str = "shuffled", images: torch.Tensor | None = None) -> torch.Tensor:
    """The walkers after patch recombination: 6 x 3 patches of 16 x 16 pixels, four pictures in a group."""
    config = PatchesConfig(rows=6, columns=3, people=4, places=places)  # type: ignore[arg-type]
    return mixed(Patches(config), walkers() if images is None else images, 4)[0]


def blended(ratio: float = 0.7, size: int = 8) -> torch.Tensor:
    """The walkers after mix-up, in rings of `size`."""
    return mixed(MixUp(MixUpConfig(ratio=ratio, people=size)), walkers(), size)[0]


def walkers_target(release: torch.Tensor | Pictures, **changes: object) -> AttackTarget:
    raw = HeldPictures(walkers())
    names = [f"p{index // 2}" for index in range(len(raw))]
    search, _ = plan_search(names, [None] * len(raw), range(len(raw)), range(len(raw)))
    values: dict[str, object] = {
        "rng": Randomness.from_seed(0),
        "protected": HeldPictures(release) if isinstance(release, torch.Tensor) else release,
        "originals": raw,
        "people": np.arange(len(raw)) // 2,
        "search": search,
        "recogniser": load_expert("histogram"),
    }
    return AttackTarget(**{**values, **changes})  # type: ignore[arg-type]


def target_of(attack: str, **changes: object) -> AttackTarget:
    """What an attack applies to: attacks that undo a protection need one to undo."""
    if attack in TINY:
        return learned_target_of(attack, **changes)
    if attack == "farthest_match":  # negatives, of which the judge there sees the very opposite
        return learned_target(1 - drawn()[0], **changes)  # type: ignore[arg-type]
    if attack == "identification":
        changes = {"budget": Budget(), **changes}
    if Need.AUTHORISED in ATTACKS[attack].needs:
        changes = {"authorised": load_expert("histogram"), **changes}
    undoes = {"jigsaw": dealt, "unmix": blended}
    return walkers_target(undoes[attack](), **changes) if attack in undoes else target(**changes)
