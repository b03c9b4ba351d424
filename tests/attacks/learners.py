"""Small targets of attacks that learn: pictures of 16 x 12 pixels, and networks to match."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any, cast

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

from veilkit.attacks import ATTACKS, Attack, AttackTarget, Budget, Masks
from veilkit.attacks.averaging import Averaging
from veilkit.attacks.features.decoding import DecodingConfig, MatchingConfig
from veilkit.attacks.features.inversion import (
    FeatureDecoding,
    FeatureMatching,
    FeatureReconstruction,
    PublicDecoding,
)
from veilkit.attacks.learned.cloning import CloningConfig, ExpertCloning
from veilkit.attacks.learned.embedding_inversion import EmbeddingInversion, IdentityInversion, InversionConfig
from veilkit.attacks.learned.learning import Learning
from veilkit.attacks.learned.recovery import Recovery, RecoveryConfig, RecoveryWithFeatures
from veilkit.attacks.learned.retrained import Retrained
from veilkit.attacks.learned.silhouette import Silhouette, SilhouetteConfig
from veilkit.attacks.people_split import Division
from veilkit.attacks.pictures import HeldPictures, Pictures
from veilkit.attacks.search import plan_search
from veilkit.experts import Embedder
from veilkit.experts.base import ExpertInfo
from veilkit.networks.reid import ReidNetwork
from veilkit.rng import Randomness
from veilkit.training.fitting import seeded

PEOPLE, SHOTS = 24, 2
SIZE = (16, 12)
BUDGET = Budget(updates=100, pictures=200, batch=8)
QUICK = Learning(rate=2e-2, watched=0.2)
HASTY = Learning(rate=3e-2, watched=0.2)
BRIEF = Budget(updates=60, pictures=200, batch=8)
SMALL = RecoveryConfig(8, 2, QUICK)


class Glance(nn.Module):
    """In place of a Re-ID network: colours of a few cells, weighed as training finds best."""

    def __init__(self) -> None:
        super().__init__()
        self.weigh = seeded(lambda: nn.Linear(36, 24), Randomness.from_seed(8))

    def embed(self, images: torch.Tensor) -> torch.Tensor:
        return cast(torch.Tensor, self.weigh(F.adaptive_avg_pool2d(images, (4, 3)).flatten(1) - 0.5))


class TinyCloning(ExpertCloning):
    """Starts from networks for pictures of 16 x 12 pixels."""

    def starts(self, target: AttackTarget, division: Division) -> dict[str, ReidNetwork]:
        return {"glance": cast(ReidNetwork, Glance())}


TINY: dict[str, Callable[[], Attack]] = {
    "recovery": lambda: Recovery(SMALL),
    "recovery_features": lambda: RecoveryWithFeatures(SMALL),
    "embedding_inversion": lambda: EmbeddingInversion(InversionConfig((64,), 1000, Learning(3e-3, 0.2))),
    "identity_inversion": lambda: IdentityInversion(InversionConfig((64,), 1000, Learning(3e-3, 0.2))),
    "feature_decoder": lambda: FeatureDecoding(DecodingConfig(8, 2, HASTY)),
    "public_decoder": lambda: PublicDecoding(DecodingConfig(8, 2, HASTY, edges=0.5, identity=0.05)),
    "cloning": lambda: TinyCloning(CloningConfig(company=1, learning=Learning(3e-3, 0.2))),
    "feature_reconstruction": lambda: FeatureReconstruction(DecodingConfig(8, 2, HASTY)),
    "feature_matching": lambda: FeatureMatching(MatchingConfig(steps=40, rate=0.05)),
    "averaging": lambda: Averaging((1, 4)),
    "retrained": lambda: Retrained(train=lambda *lessons: JUDGE),  # training itself is tested by itself
    "silhouette": lambda: Silhouette(SilhouetteConfig(8, 1, HASTY)),
}


class Thumbnail(Embedder):
    """Means of a grid of cells: linear, differentiable, and fond of colours in their places."""

    def __init__(self, name: str, cells: tuple[int, int]) -> None:
        self._name, self._cells = name, cells

    @property
    def info(self) -> ExpertInfo:
        length = 3 * self._cells[0] * self._cells[1]
        return ExpertInfo(self._name, "embedder", length, self._name.ljust(64, "0"), True, "none", "", "file")

    def embed(self, images: torch.Tensor) -> torch.Tensor:
        return F.adaptive_avg_pool2d(images, self._cells).flatten(1) - 0.5


JUDGE, AUTHORISED, COLOURS = Thumbnail("judge", (4, 3)), Thumbnail("authorised", (8, 6)), Thumbnail("colours", (2, 1))


class Recorder:
    """In place of `retrained.train_on`: keeps what it was given, and answers with the judge."""

    def __init__(self) -> None:
        self.lessons: list[tuple[Any, ...]] = []

    def __call__(self, *lessons: Any) -> Embedder:
        self.lessons.append(lessons)
        return JUDGE

    @property
    def starts(self) -> list[Path | None]:
        """Where each training was to start."""
        return [config.init for _, _, config, *_ in self.lessons]


@cache
def drawn(dark: bool = False) -> tuple[torch.Tensor, np.ndarray]:
    """Images (N, 3, 16, 12) in [0, 1] of people in two colours before a wall, and where they stand, (N, 16, 12).

    Before a dark wall people are easily told from it.
    """
    images, masks = [], []
    for identity in range(PEOPLE):
        clothes = np.random.default_rng([1, identity]).random((2, 3))
        clothes = 0.35 + 0.65 * clothes if dark else clothes
        for shot in range(SHOTS):
            random = np.random.default_rng([2, identity, shot])
            mask = np.zeros(SIZE, dtype=bool)
            left, top = random.integers(1, 6), random.integers(1, 4)
            mask[top : top + 12, left : left + 5] = True
            image = np.broadcast_to((0.0 if dark else 0.4) + 0.2 * random.random(3), (*SIZE, 3)).copy()
            image[mask] = clothes[0]
            lower = mask & (np.arange(SIZE[0])[:, None] >= top + 6)
            image[lower] = clothes[1]
            images.append(torch.from_numpy(image).permute(2, 0, 1).float())
            masks.append(mask)
    return (torch.stack(images) * 255).round() / 255, np.stack(masks)


def people() -> np.ndarray:
    return np.arange(PEOPLE * SHOTS) // SHOTS


def learned_target(
    release: torch.Tensor | Pictures | None = None, *, dark: bool = False, **changes: object
) -> AttackTarget:
    """The release is the originals themselves unless given; half of the people teach."""
    images, masks = drawn(dark)
    search, _ = plan_search([str(code) for code in people()], [None] * len(images), *[range(len(images))] * 2)
    if release is None:
        release = images
    values: dict[str, object] = {
        "rng": Randomness.from_seed(0),
        "protected": HeldPictures(release) if isinstance(release, torch.Tensor) else release,
        "originals": HeldPictures(images),
        "people": people(),
        "search": search,
        "recogniser": JUDGE,
        "budget": BUDGET,
        "protector": lambda images, draw: images,
        "authorised": AUTHORISED,
        "masks": Masks(masks, "drawn"),
    }
    return AttackTarget(**{**values, **changes})  # type: ignore[arg-type]


def learned_target_of(attack: str, **changes: object) -> AttackTarget:
    """A release of the originals themselves, with which a tiny attacker is done in no time."""
    changes = {"work": shared_work(), **changes}
    if attack == "embedding_inversion":  # few numbers are soon learned
        changes = {"recogniser": COLOURS, "budget": Budget(updates=400, pictures=200, batch=8), **changes}
    if attack == "identity_inversion":
        changes = {"identity": COLOURS, "budget": Budget(updates=400, pictures=200, batch=8), **changes}
    if attack in ("feature_decoder", "public_decoder"):  # few features are soon decoded, as well as they can be
        changes = {"authorised": COLOURS, "budget": BRIEF, **changes}
    if attack == "feature_reconstruction":  # features without any protection
        features = COLOURS.embed(drawn()[0]).numpy()
        changes = {"features": features, "clean_features": features, "budget": BRIEF, **changes}
    if attack == "silhouette":
        changes = {"dark": True, "budget": BRIEF, **changes}
    return learned_target(**changes)  # type: ignore[arg-type]


def make_of(attack: str) -> Callable[[], Attack]:
    """An attack of a size for tests."""
    return TINY.get(attack, ATTACKS[attack])


@cache
def shared_work() -> Path:
    """A folder in which tests of one session find each other's trainings."""
    folder = tempfile.TemporaryDirectory(prefix="veilkit-tests-")
    _KEPT.append(folder)
    return Path(folder.name)


_KEPT: list[tempfile.TemporaryDirectory[str]] = []


def noise_like(images: torch.Tensor, seed: int = 3) -> torch.Tensor:
    return Randomness.from_seed(seed).uniform(*images.shape)
