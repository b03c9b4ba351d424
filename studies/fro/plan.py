"""What FRO's study computes: its options, and its cells."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from studies.fro.shadows import ShadowStudyConfig
from veilkit.errors import ConfigError
from veilkit.training.loop import Decay
from veilkit.training.reid_config import PLAIN, ReidConfig

RIVALS = ("patches", "mixup", "noise")
CLUSTERED = tuple((model, seen) for release in ("fro-1", "patches") for model, seen in (
    ("pool", "train"), ("pool", release), ("pool", "val"), (release, "train"), (release, release), (release, "val"),
) if release == "fro-1" or (model, seen) not in (("pool", "train"), ("pool", "val")))  # fmt: skip


@dataclass(frozen=True, slots=True)
class FroStudyConfig:
    """people: how many are trained on, the first by name. steps: of the synthesis.

    epochs, rate: of pool and students, by Adam; the rate falls to zero by a cosine. frozen: leading parts of their
    backbone that stay as the weights they start from have them; none without such weights.
    replay: temperature at which students match the pool's logits. preset: of the synthesis. paper_scale: at which the
    preset `paper`, with as many steps, and replay at temperature 1 are shown beside it.
    held_back: of each person and camera so many pictures are not trained on, for the attacks to ask about. scales: of
    the synthetic set (Figure 9); the largest is made, and the smaller ones are parts of it. temperatures, softenings:
    the grid of Figure 8, of the first `grid_people` at `grid_scale`. ratios: of mix-up (Figure 7). clusters: people
    whose features are clustered (Figures 3 and 5). shadows: the tiny study of membership by shadow models.
    """

    people: int = 300
    held_back: int = 1
    backbone: str = "mobilenetv2"
    size: tuple[int, int] = (128, 64)
    epochs: int = 16
    rate: float = 1e-3
    frozen: int = 0
    batch: int = 16
    replay: float = 4.0
    preset: str = "varied-people"
    paper_scale: float = 0.5
    steps: int = 40
    scales: tuple[float, ...] = (0.5, 1.0, 2.0)
    temperatures: tuple[float, ...] = (0.5, 5.0, 20.0)
    softenings: tuple[float, ...] = (0.0, 0.2, 0.4)
    grid_people: int = 50
    grid_scale: float = 0.5
    ratios: tuple[float, ...] = (0.9, 0.8, 0.7, 0.6, 0.5)
    clusters: int = 30
    pairs: int = 2000
    shadows: ShadowStudyConfig = field(default_factory=ShadowStudyConfig)
    seed: int = 0

    def __post_init__(self) -> None:
        if 1.0 not in self.scales:
            raise ConfigError("scales must hold 1.0, at which FRO is compared with the others")
        if max(self.clusters, self.grid_people) > self.people:
            raise ConfigError(
                f"clusters and grid_people must not exceed people, but got {self.clusters}, {self.grid_people} "
                f"and {self.people}"
            )
        if self.held_back < 0:
            raise ConfigError(f"held_back must not be negative, but got {self.held_back}")

    def recipe(self, *, pretrained: bool) -> ReidConfig:
        """Of the pool and of every student: cross-entropy alone, as in the paper, at a rate for a few epochs."""
        return replace(
            PLAIN, backbone=self.backbone, size=self.size, epochs=self.epochs, rate=self.rate, warmup=1,
            decay=Decay.COSINE, frozen=self.frozen if pretrained else 0, identities=self.batch, seed=self.seed,
        )  # fmt: skip


def cell_names(config: FroStudyConfig) -> tuple[str, ...]:
    """All cells, in the order in which they are computed."""
    return (
        "pool",
        *(f"student/fro-{scale:g}" for scale in config.scales),
        "student/originals",
        *(f"student/{name}" for name in RIVALS),
        *(f"ssim/{name}" for name in ("fro-1", *RIVALS)),
        "attacks/fro-1", "attacks/shadows",
        *(f"clusters/{model}/{seen}" for model, seen in CLUSTERED),
        *(f"mixup/mixup-{ratio:g}" for ratio in config.ratios),
        "student/fro-paper",
        *(f"grid/grid-T{t:g}-e{e:g}" for t in config.temperatures for e in config.softenings),
    )  # fmt: skip


def scale(config: FroStudyConfig) -> str:
    """What the figures are of."""
    synthesis = f"{config.preset}, {config.steps} steps"
    return f"{config.people} people, {config.backbone}, {synthesis}; official query and gallery"
