"""Settings of PrivacyReID and of its training (Section 4.2), as in the paper and for a CPU."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Literal, TypeAlias

from veilkit.configs import check_ranges
from veilkit.errors import ConfigError
from veilkit.networks.pix2pix import PatchGanConfig, Pix2PixConfig
from veilkit.training.loop import Decay
from veilkit.training.reid_config import AGW, ReidConfig

Kind: TypeAlias = Literal["blur", "pixelate", "noise"]
_WITHOUT_EFFECT = ("stored", "small_size", "average", "projected")


@dataclass(frozen=True, slots=True)
class PrivacyReidConfig:
    """The defaults are the paper's, and the released code's where the paper is silent.

    reid: the jointly trained recogniser, and with it the working size, epochs, batches, augmentation, warm-up and
    seed of everything. generator: of both directions. discriminator: of both. l1: weight of the two L1 losses (Eq. 3,
    6). rate, weight_decay, beta: Adam's for generators and discriminators. milestones: shares of the epochs after
    which all rates fall to a tenth.
    validation: share of the people set aside, and of their pictures that are queries. check_every: epochs between two
    checks on them. upgrade: whether supervision is upgraded at all. psnr_slack, ssim_slack, rank1_slack: epsilon_psnr
    (dB), epsilon_ssim and epsilon_r1. baseline_epochs: of the recogniser of raw and desensitised pictures, whose
    Rank-1 is where the first upgrade starts from.

    desensitise: the control that the training starts from, at its default strength (blur: standard deviation 12
    pixels; pixelate: cells of 24; noise: 0.5), where lengths are those at 256 pixels of height and shrink with the
    working size. own_size: released pictures have their originals' size; without it they have the working size, as in
    the paper.
    """

    reid: ReidConfig = field(default_factory=lambda: replace(AGW, size=(256, 128)))
    generator: Pix2PixConfig = field(default_factory=Pix2PixConfig)
    discriminator: PatchGanConfig = field(default_factory=PatchGanConfig)
    l1: float = 100.0
    rate: float = 3.5e-4
    weight_decay: float = 5e-4
    beta: float = 0.5
    milestones: tuple[float, ...] = (40 / 120, 80 / 120)
    validation: float = 0.2
    check_every: int = 5
    upgrade: bool = True
    psnr_slack: float = 1.0
    ssim_slack: float = 0.05
    rank1_slack: float = 0.05
    baseline_epochs: int = 120
    desensitise: Kind = "pixelate"
    own_size: bool = True

    def __post_init__(self) -> None:
        step = 2**self.generator.depth
        if self.size[0] % step or self.size[1] % step:
            raise ConfigError(
                f"a generator that halves {self.generator.depth} times needs a size of multiples of {step}, "
                f"but got {self.size[0]} x {self.size[1]}: lower generator.depth, or change reid.size"
            )
        if min(self.size) // 2**self.discriminator.layers < 4:
            raise ConfigError(
                f"{self.discriminator.layers} layers of a discriminator leave nothing of "
                f"{self.size[0]} x {self.size[1]} pixels: lower discriminator.layers"
            )
        for name in _WITHOUT_EFFECT:
            if getattr(self.reid, name):
                raise ConfigError(f"reid.{name} has no effect in joint training: leave it out")
        check_ranges(self, {
            "l1": (0, 1e6), "rate": (1e-12, 1), "weight_decay": (0, 1), "beta": (0, 0.9999),
            "validation": (0.01, 0.9), "check_every baseline_epochs": (1, 10_000),
            "psnr_slack ssim_slack rank1_slack": (0, 100),
        })  # fmt: skip

    @property
    def size(self) -> tuple[int, int]:
        """The working size (height, width)."""
        return self.reid.size


PAPER = PrivacyReidConfig()
# For two hours on two cores, with a backbone that starts from ImageNet's weights (--init). What makes so few updates
# enough, seen on validation people of CUHK03-NP: after 300 updates of width 32 at rate 1e-3, recovered SSIM was 0.62
# from pix2pix's first weights and 0.71 from He's; width 16 at rate 2e-3 had 0.83 after 800, each three times as fast.
SMALL = PrivacyReidConfig(
    reid=replace(
        AGW, backbone="mobilenetv2", size=(128, 64), epochs=30, identities=8, warmup=1, rate=7e-4, decay=Decay.COSINE
    ),
    generator=Pix2PixConfig(width=16, depth=6, start="he"),
    discriminator=PatchGanConfig(width=16, layers=2),
    rate=2e-3,
    weight_decay=0.0,
    baseline_epochs=10,
)
