"""What FRO's study of faces computes: its options."""

from __future__ import annotations

from dataclasses import dataclass, replace

from veilkit.errors import ConfigError
from veilkit.training.loop import Decay
from veilkit.training.reid_config import PLAIN, ReidConfig

MODELS = ("pool", "originals", "student")


@dataclass(frozen=True, slots=True)
class FaceStudyConfig:
    """people: how many are trained on, those with the most pictures outside the test folds, at least `fewest` each.

    shots: of one person at most, in training and test. folds: whose pairs, and people, are for the test alone.
    middle: side of the square in the middle of a stored picture that is used, in pixels; it is resized to `size`.
    epochs, rate: of pool and students, by Adam; the rate falls to zero by a cosine. steps, scale: of the synthesis.
    frozen: leading parts of the backbone that stay as the weights they start from have them. replay: temperature at
    which students match the pool's logits. pairs: at most so many
    for SSIM.
    """

    people: int = 300
    fewest: int = 4
    shots: int = 6
    folds: tuple[int, ...] = (8, 9, 10)
    middle: int = 120
    backbone: str = "mobilenetv2"
    size: tuple[int, int] = (96, 96)
    epochs: int = 16
    rate: float = 1e-3
    frozen: int = 0
    batch: int = 16
    replay: float = 4.0
    preset: str = "varied"
    steps: int = 40
    scale: float = 1.0
    pairs: int = 2000
    seed: int = 0

    def __post_init__(self) -> None:
        if len(set(self.folds)) < 2:
            raise ConfigError(f"folds must name two or more, to choose a threshold on others, but got {self.folds}")
        if self.people < 2 or not 2 <= self.fewest <= self.shots or self.pairs < 1:
            raise ConfigError(
                "expected people >= 2, 2 <= fewest <= shots and pairs >= 1, "
                f"but got {self.people}, {self.fewest}, {self.shots} and {self.pairs}"
            )

    def recipe(self, *, pretrained: bool) -> ReidConfig:
        """Of the pool and of both students: cross-entropy alone, as in the paper, at a rate for a few epochs."""
        return replace(
            PLAIN, backbone=self.backbone, size=self.size, epochs=self.epochs, rate=self.rate, warmup=1,
            decay=Decay.COSINE, frozen=self.frozen if pretrained else 0, identities=self.batch, seed=self.seed,
        )  # fmt: skip
