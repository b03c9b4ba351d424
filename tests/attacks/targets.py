"""Small targets of attacks, in memory."""

from __future__ import annotations

import zlib

import numpy as np
import torch

from tests.audit.folders import person
from veilkit.attacks import AttackTarget
from veilkit.attacks.pictures import HeldPictures, NoisePictures, Pictures
from veilkit.attacks.search import plan_search
from veilkit.experts import Embedder, load_expert
from veilkit.experts.base import ExpertInfo
from veilkit.rng import Randomness

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
